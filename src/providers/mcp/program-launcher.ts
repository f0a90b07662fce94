/** A process of its own that becomes the program of an MCP server. It loads next to nothing, and ends where the program cannot be confined. */
import { writeSync } from 'node:fs'
import { becomeConfined } from '../../kit/confinement.ts'

try {
  becomeConfined(JSON.parse(process.env.GATEHOUSE_PROGRAM ?? ''))
} catch (thrown) {
  writeSync(2, `gatehouse: ${(thrown as Error).message}; \`sandbox: off\` starts it with all that the gateway may\n`)
  process.exit(126)
}
