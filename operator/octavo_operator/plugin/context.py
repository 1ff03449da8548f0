"""`namespace_of`: the namespace that kubectl itself would use; a plugin is not told it."""

import asyncio

FALLBACK = "default"


async def namespace_of(kubeconfig: str | None, context: str | None, kubectl: str = "kubectl") -> str:
    """From kubectl's own reading of its configuration, merged files included; `default` where there is no kubectl."""
    command = [kubectl, "config", "view", "--minify", "--output", "jsonpath={..namespace}"]
    command += [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    command += [f"--context={context}"] if context else []
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return FALLBACK
    output, _ = await process.communicate()
    return output.decode().strip() or FALLBACK if process.returncode == 0 else FALLBACK
