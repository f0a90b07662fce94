/** The first file of an executable: sets what the runtime reads at its start, and becomes the command line, the sandbox's renderer or a program. */
import process from 'node:process'

const CONNECTIONS = 'BUN_CONFIG_MAX_HTTP_REQUESTS'
const args = process.argv.slice(2)

if (args[0] === 'sandbox-renderer') {
  await import('../../packages/sandbox/src/render/renderer.ts')
} else if (args[0] === 'mcp-program') {
  await import('../../src/providers/mcp/program-launcher.ts')
} else if (process.env[CONNECTIONS] === undefined && process.execve) {
  // The runtime would run no more than 256 of its requests to upstreams at once, and reads this before the program starts.
  process.execve(process.execPath, [process.execPath, ...args], { ...process.env, [CONNECTIONS]: '65535' })
} else {
  await import('../../src/main.ts')
}
