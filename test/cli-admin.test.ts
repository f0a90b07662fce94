/** `gatehouse admin`, `audit` and `completion`, and what other commands record in the audit log. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandLineActor } from '../src/cli/actor.ts'
import { run as admin } from '../src/cli/commands/admin.ts'
import { run as audit } from '../src/cli/commands/audit.ts'
import { run as budget } from '../src/cli/commands/budget.ts'
import { completionOf } from '../src/cli/commands/completion.ts'
import { run as project } from '../src/cli/commands/project.ts'
import { run as token } from '../src/cli/commands/token.ts'
import { openStore } from '../src/store/open-store.ts'
import { refusal, startAdminGateway } from './kit/admin.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gatehouse-cli-admin-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

type Run = (args: string[], terminal: Parameters<typeof admin>[1]) => Promise<number>

/** Runs a command on the store of the directory; its output as JSON. */
async function call(run: Run, ...args: string[]) {
  let out = ''
  const terminal = {
    out: (text: string) => {
      out += text
    },
    err: () => {},
    environment: { GATEHOUSE_DATA_DIR: directory },
    cwd: directory,
    color: false,
    interactive: false,
  }
  const code = await run([...args, '--json'], terminal)
  return { code, ...JSON.parse(out) }
}

describe('the audit log of commands', () => {
  test('names the user of the operating system, and holds no secret', async () => {
    const made = await call(token, 'create', '--name', 'laptop')
    const id = made.token.token_id
    await call(token, 'update', id, '--models', 'sandbox/*')
    const rotated = await call(token, 'rotate', id, '--overlap', '1h')
    await call(token, 'revoke', id)
    const { project: team } = await call(project, 'create', 'team')
    await call(project, 'disable', team.project_id)
    await call(budget, 'credit', '5', '--project', team.project_id)
    const given = await call(admin, 'create', '--name', 'board', '--role', 'viewer')
    await call(admin, 'revoke', given.admin_token.admin_token_id)
    const { audit: rows } = await call(audit, 'list')
    expect(rows.map(({ action }: { action: string }) => action)).toEqual([
      'admin_token.revoke',
      'admin_token.create',
      'budget.credit',
      'project.update',
      'project.create',
      'token.revoke',
      'token.rotate',
      'token.update',
      'token.create',
    ])
    expect(new Set(rows.map(({ actor }: { actor: string }) => actor))).toEqual(new Set([commandLineActor().actor]))
    expect(rows[7]).toMatchObject({ before: { models: ['*'] }, after: { models: ['sandbox/*'] } })
    for (const secret of [made.secret, rotated.secret, given.secret]) expect(JSON.stringify(rows)).not.toContain(secret)
    expect((await call(audit, 'list', '--action', 'token.rotate', '--limit', '1')).audit).toHaveLength(1)
  })

  test('is checked by verify, which names the first broken row', async () => {
    for (const name of ['a', 'b', 'c']) await call(project, 'create', name)
    expect(await call(audit, 'verify')).toMatchObject({ code: 0, rows: 3, broken: null })
    const { Database } = await import('bun:sqlite')
    const file = new Database(join(directory, 'gatehouse.db'))
    file.run("update audit set actor = 'nobody' where sequence = 2")
    file.close()
    expect(await call(audit, 'verify')).toMatchObject({ code: 1, rows: 1, broken: { sequence: 2 } })
  })
})

describe('gatehouse admin login', () => {
  test('prints a link that logs in once', async () => {
    await (await openStore({ url: `sqlite:${join(directory, 'gatehouse.db')}` })).close()
    const { link } = await call(admin, 'login', '--url', 'http://gatehouse.test')
    const gateway = await startAdminGateway({}, { store_url: `sqlite:${join(directory, 'gatehouse.db')}` })
    // The link was made by the clock of the machine, which the gateway's stands before.
    const [address, secret] = link.split('#')
    expect(address).toBe('http://gatehouse.test/console')
    const login = () =>
      gateway.call('/admin/v1/login', {
        json: { link: secret },
        headers: { 'x-gatehouse-csrf': '1', authorization: '' },
      })
    expect((await login()).status).toBe(200)
    expect(await refusal(await login())).toEqual([401, 'invalid_api_key'])
    await gateway[Symbol.asyncDispose]()
  })
})

describe('gatehouse completion', () => {
  const commands = { token: { summary: "a token's", load: async () => ({ run: token }) } }

  test.each(['bash', 'zsh', 'fish'])('prints a script for %s with every command, action and option', async (shell) => {
    let script = ''
    const out = (text: string) => {
      script += text
    }
    const terminal = { out, err: () => {}, environment: {}, cwd: directory, color: false, interactive: false }
    expect(await completionOf(commands)([shell], terminal)).toBe(0)
    for (const word of ['token', 'create', 'webhook-secret', 'overlap', 'data-dir']) expect(script).toContain(word)
    if (shell !== 'bash') return
    const typed = 'COMP_WORDS=(gatehouse token ro); COMP_CWORD=2; _gatehouse; echo "$COMPREPLY"'
    const bash = Bun.spawn(['bash', '-c', `${script}\n${typed}`], { stdout: 'pipe' })
    expect((await new Response(bash.stdout).text()).trim()).toBe('rotate')
  })
})
