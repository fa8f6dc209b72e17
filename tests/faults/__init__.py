"""Fault injection: disk errors, power cuts and kills at every file operation of every stage.

A library preloaded in front of libc (shim.c) numbers every change that a command makes to the files of a sandbox: each
write, fsync, rename, unlink, mkdir and so on, by Python, torch, NumPy, pyarrow and safetensors. A trial selects one of
them and a fault:

    kill-before, kill-after    SIGKILL for the whole process group
    ENOSPC, EIO; once, always  the operation fails (a write perhaps after half of its bytes), alone or with all later
                               ones; a full disk still lets files be renamed and removed
    torn                       SIGKILL, and then one of the states that a power cut can leave (disk.py): bytes without
                               an fsync, and names without an fsync of their folder, are lost

Then the same command runs again. In every third trial, a second fault hits this recovery, and the command runs once
more. The requirements (oracle.py):

    - the last run succeeds, within a minute, and never needs --force;
    - the sandbox equals that of an uninterrupted run, byte for byte: the artifact, request.json, the manifest and the
      log without their times, and the other artifacts, with no additional files. Lock files stay by design, and the
      cache of vectors may hold less;
    - a command that reports success has made everything durable;
    - a failed command prints an error and a hint in two lines, and does not report a defect;
    - while a finished artifact is replaced, a reader always finds either the old or the new one, complete.

The stages are the real ones, with a model of one layer and a dozen sentences (stages.py); WordNet is replaced by a test
function. A worker loads everything, runs every stage without faults, and forks a child for every command.

    make faults                                       10,000 runs
    PYTHONPATH=tests python -m faults.campaign --help

Not covered: writes through a memory map (no stage uses them; the shim would detect it), disks that ignore fsync, and
the compilation of ONNX graphs, unless the stage export-onnx is selected by name.
"""
