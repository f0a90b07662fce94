/** Finds the programs that check the files of deploy/, which test/deploy/check.sh installs, and runs them. */
import { existsSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const DEPLOY = join(import.meta.dir, '../../deploy')
const TOOLS = process.env.GATEHOUSE_DEPLOY_TOOLS ?? join(import.meta.dir, '../../dist/.deploy-tools')

/** The path of a program, or null with a line that says what is not checked. */
export function findTool(name: string, what: string): string | null {
  const path = Bun.which(name, { PATH: [join(TOOLS, 'bin'), process.env.PATH ?? '', '/usr/sbin'].join(':') })
  if (path === null)
    process.stderr.write(`SKIPPED: ${what}: ${name} is not installed (test/deploy/check.sh installs it).\n`)
  return path
}

/** The directories of Kubernetes' JSON schemas: the oldest version that the chart supports, and a new one. */
export function kubernetesSchemas(): { version: string; directory: string }[] {
  const directory = join(TOOLS, 'schemas')
  if (!existsSync(directory)) return []
  return readdirSync(directory).map((version) => ({ version, directory: join(directory, version) }))
}

export async function runTool(command: string[], input?: string) {
  const child = Bun.spawn(command, {
    stdin: input === undefined ? 'ignore' : Buffer.from(input),
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, HOME: tmpdir() },
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, out, err }
}
