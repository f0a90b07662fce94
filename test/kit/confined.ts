/** Runs commands confined as the program of an MCP server is, without the server. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { McpServerConfig } from '../../src/config/schema/mcp-schema.ts'
import { landlockVersion } from '../../src/kit/confinement.ts'
import { confinementOf, launched } from '../../src/providers/mcp/program-sandbox.ts'

export const HAS_LANDLOCK = landlockVersion() > 0

/** Of programs that tests start for other reasons than their sandbox: it is on where the system has it. */
export const UNCONFINED_WITHOUT_LANDLOCK = HAS_LANDLOCK ? {} : ({ sandbox: 'off' } as const)

type Outcome = { out: string; err: string; code: number }

/** `before`: a script of the runtime that becomes the launcher. */
type As = { uid?: number; before?: string }

/** `data`: the data directory of a gateway. */
export function confinedShell(data: string, hidden: string[] = [], path = process.env.PATH ?? '') {
  const places = { directory: join(data, 'mcp'), hidden: [data, ...hidden] }
  mkdirSync(data, { recursive: true })
  const confine = (config: McpServerConfig) =>
    confinementOf({ name: 'shell', config, inherited: { PATH: path }, places })

  async function run(config: McpServerConfig, { uid, before }: As = {}): Promise<Outcome> {
    const { command, args, env, cwd } = launched(confine(config))
    const launcher = before === undefined ? [] : [process.execPath, '-e', before]
    const child = Bun.spawn([...launcher, command, ...args], {
      cwd: cwd ?? '/',
      env,
      stdin: 'ignore',
      detached: true, // a group of its own
      stdout: 'pipe',
      stderr: 'pipe',
      ...(uid !== undefined && { uid, gid: uid }),
    })
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    const code = await child.exited
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It has left no process.
    }
    return { out: out.trim(), err: err.trim(), code }
  }

  return {
    home: join(places.directory, 'shell'),
    confine,
    run,
    /** A script of `sh`. */
    sh: (script: string, sandbox: McpServerConfig['sandbox'] = {}, as: As = {}) =>
      run({ command: 'sh', args: ['-c', script], sandbox }, as),
    /** A script of the runtime of the tests. */
    script: (code: string, sandbox: McpServerConfig['sandbox'] = {}) =>
      run({ command: process.execPath, args: ['-e', code], sandbox }),
  }
}
