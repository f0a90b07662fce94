/** The first file of an executable: sets what the runtime reads at its start, and becomes the command line, the sandbox's renderer or a program. */
import process from 'node:process'

/** As in `bin/gatehouse`, which says why. The runtime reads these before the program starts. */
const VARIABLES = { BUN_CONFIG_MAX_HTTP_REQUESTS: '65535', MIMALLOC_PURGE_DELAY: '1000' }
const args = process.argv.slice(2)

if (args[0] === 'sandbox-renderer') {
  await import('../../packages/sandbox/src/render/renderer.ts')
} else if (args[0] === 'mcp-program') {
  await import('../../src/providers/mcp/program-launcher.ts')
} else if (Object.keys(VARIABLES).some((name) => process.env[name] === undefined) && process.execve) {
  process.execve(process.execPath, [process.execPath, ...args], { ...VARIABLES, ...process.env })
} else {
  await import('../../src/main.ts')
}
