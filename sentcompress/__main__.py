"""`python -m sentcompress` is the same command as `sentcompress`."""

from sentcompress.cli.main import main

if __name__ == "__main__":
    main()
