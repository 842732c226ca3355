# SPDX-License-Identifier: Apache-2.0
# realtime_dynamics on the official ROS 2 image; runs the demonstration unless told otherwise.
#
#   docker build -t realtime_dynamics .
#   docker run --rm realtime_dynamics
#   docker run --rm realtime_dynamics ros2 launch realtime_dynamics demo.launch.py mode:=pd once:=true
#   docker run --rm -it realtime_dynamics bash
#
# --cap-add=SYS_NICE --ulimit rtprio=99 gives the control loop its real-time priority.
ARG ROS_DISTRO=jazzy
FROM ros:${ROS_DISTRO}-ros-base

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /workspace

# Dependencies first: they change less often than the code.
COPY package.xml src/realtime_dynamics/package.xml
RUN apt-get update \
    && rosdep update --rosdistro "${ROS_DISTRO}" \
    && rosdep install --from-paths src --ignore-src --rosdistro "${ROS_DISTRO}" -y \
    && rm -rf /var/lib/apt/lists/*

COPY . src/realtime_dynamics
RUN source "/opt/ros/${ROS_DISTRO}/setup.bash" \
    && colcon build --cmake-args -DBUILD_TESTING=OFF -DCMAKE_BUILD_TYPE=Release

# The image's entry point sources the distribution's setup.bash; this adds the workspace.
RUN sed -i 's|^exec|source /workspace/install/setup.bash\nexec|' /ros_entrypoint.sh
CMD ["ros2", "launch", "realtime_dynamics", "demo.launch.py", "once:=true"]
