"""Faults of the disk, of the power and of the process, at every operation of every stage.

A library in front of libc (shim.c) numbers every change that a command makes to the files of a sandbox: each write,
fsync, rename, unlink, mkdir and so on, Python's and those of torch, NumPy, pyarrow and safetensors alike. A trial
chooses one of them and what happens there:

    kill-before, kill-after    SIGKILL for the whole process group
    ENOSPC, EIO; once, always  the operation fails (a write perhaps after half of its bytes), alone or with all later
                               ones; a full disk still lets files be renamed and removed
    torn                       SIGKILL, and then one of the states that a power cut may leave (disk.py): bytes without
                               an fsync and names without an fsync of their folder are lost

and then the same command runs again; in every third trial a second fault hits this recovery, and it runs once more.
What must hold (oracle.py):

    - the last run ends well, within a minute, and never needs --force;
    - the sandbox equals that of the unbroken run, byte for byte: the artifact, request.json, the manifest and the log
      without their times, the artifacts beside it, and no file more; lock files stay by design, and the cache of
      vectors may hold less;
    - a command that reports success has made everything durable;
    - a failed command says in two lines what is wrong and what to do, not that it has a defect;
    - over a finished artifact, a reader finds the old one or the new one, whole, at any time.

The stages are the real ones, with a model of one layer and a dozen sentences (stages.py); WordNet is replaced by a
function of the test's own. A worker loads all, runs every stage unbroken, and forks a child for every command.

    make faults                                       10,000 runs
    PYTHONPATH=tests python -m faults.campaign --help

Not covered: writes through a memory map (none of the stages does that: the shim would tell), a disk that loses what it
was told to keep, and the compilation of ONNX graphs unless export-onnx is asked for by name.
"""
