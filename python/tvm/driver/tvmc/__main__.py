"""``python -m tvm.driver.tvmc compile|run|tune``."""

from .command import main

if __name__ == "__main__":
    raise SystemExit(main())
