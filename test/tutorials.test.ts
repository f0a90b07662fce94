/** The tutorials of the manual run as they are shown: their commands with curl, their program with the openai package. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_TASKS } from '../src/config/config.ts'
import { loadManual } from '../src/site/manual/load-manual.ts'
import { openPort, type Port } from './kit/served.ts'

const ROOT = join(import.meta.dir, '..')
const ADDRESS = 'http://127.0.0.1:8787'
const pages = await loadManual()

/** The blocks of code of a page in this language. */
function blocks(page: string, language: string): string[] {
  const text = pages.find(({ name }) => name === page)?.text ?? ''
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, code = '']) => code)
}

let port: Port
let directory: string
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-tutorials-'))
  const tasks = { ...DEFAULT_TASKS, poll_seconds: 0.2, slow_poll_seconds: 1 }
  port = await openPort({ tasks }, { manual: async () => pages })
})
afterAll(async () => {
  await port.close()
  rmSync(directory, { recursive: true })
})

async function run(command: string[], cwd: string): Promise<string> {
  const env = { PATH: process.env.PATH ?? '', GATEHOUSE_TOKEN: port.token }
  const child = Bun.spawn(command, { cwd, env, stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')}: ${out}${err}`)
  return out
}

const here = (code: string) => code.replaceAll(ADDRESS, port.url.replace(/\/v1$/, ''))
const shell = (code = '') => run(['sh', '-c', here(code)], directory)

describe.skipIf(!Bun.which('curl'))('the tutorial "Start the gateway and make a first call"', () => {
  const commands = blocks('getting-started', 'sh').filter((code) => code.startsWith('curl'))

  it('gets an answer from the manual, and the list of models', async () => {
    expect(commands).toHaveLength(2)
    const answer = JSON.parse(await shell(commands[0]))
    expect(answer.choices[0].message.content).toContain('page "providers", section "Add a provider"')
    const models = JSON.parse(await shell(commands[1]))
    expect(models.data.map(({ id }: { id: string }) => id)).toContain('sandbox/general')
  })

  it('streams the answer to the program', async () => {
    const [program = ''] = blocks('getting-started', 'ts')
    expect(await run([process.execPath, '-e', here(program)], ROOT)).toContain('section "Add a provider"')
  })
})

describe.skipIf(!Bun.which('curl'))('the tutorial "Make your first video"', () => {
  const [submit = '', poll = '', download = ''] = blocks('first-video', 'sh')
  const [failing = ''] = blocks('first-video', 'json')

  it('submits one video, polls it and downloads it', async () => {
    const quick = submit.replace('A red kite', '@sandbox quick=1\\nA red kite')
    const { task_id } = JSON.parse(await shell(quick)).data
    expect(JSON.parse(await shell(quick)).data.task_id).toBe(task_id)
    const task = await ended(task_id)
    expect(task.status).toBe('SUCCESS')
    await shell(download.replace(/"http:[^"]*"/, `"${task.outputs[0]}"`))
    expect(readFileSync(join(directory, 'kite.mp4')).subarray(4, 8).toString()).toBe('ftyp')
  })

  it('shows the failure that the prompt asks for', async () => {
    const order = submit.replace('first-video', 'first-failure').replace(/-d '.*'/, () => `-d '${failing.trim()}'`)
    const task = await ended(JSON.parse(await shell(order)).data.task_id)
    expect([task.status, task.fail_code]).toEqual(['FAILURE', 'content_policy_violation'])
  })

  async function ended(task_id: string) {
    for (;;) {
      const { data } = JSON.parse(await shell(poll.replace('task_...', task_id)))
      if (data.status === 'SUCCESS' || data.status === 'FAILURE') return data
    }
  }
})
