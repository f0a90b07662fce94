import { describe, expect, it } from 'bun:test'
import { join } from 'node:path'

const POLICIES = `
const { readdirSync, readFileSync } = require('node:fs')
const ofTask = (file) => readFileSync('/proc/self/task/' + file, 'utf8')
const policies = {}
for (const task of readdirSync('/proc/self/task')) {
  const line = ofTask(task + '/stat')
  // After the name, which ends with the last bracket, the policy is the 39th column.
  policies[task === String(process.pid) ? 'main' : ofTask(task + '/comm').trim()] = line.slice(line.lastIndexOf(')') + 2).split(' ')[38]
}
console.log(JSON.stringify(policies))
`

/** The policies of the threads of a process that calls a server, by name. */
async function policiesAfter(code: string): Promise<Record<string, string>> {
  const call = `const server = Bun.serve({ port: 0, fetch: () => new Response('ok') })
    if ((await (await fetch(server.url)).text()) !== 'ok') process.exit(1)
    ${POLICIES}
    process.exit(0)`
  const child = Bun.spawn([process.execPath, '-e', `${code}\n${call}`], { stdout: 'pipe', stderr: 'inherit' })
  return JSON.parse(await new Response(child.stdout).text())
}

describe.skipIf(process.platform !== 'linux')('the thread of the runtime that speaks with upstreams', () => {
  const module = JSON.stringify(join(import.meta.dir, 'http-thread.ts'))

  it('is scheduled as a batch, the event loop as before, and requests are answered', async () => {
    const policies = await policiesAfter(`await (await import(${module})).batchHttpThread()`)
    expect(policies).toMatchObject({ main: '0', 'HTTP Client': '3' })
  })

  it('would otherwise be scheduled as the event loop is', async () => {
    expect(await policiesAfter('')).toMatchObject({ main: '0', 'HTTP Client': '0' })
  })
})
