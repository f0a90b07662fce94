/** `gatehouse token` and `project` on a running gateway: as on the store, and what goes wrong. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run as project } from '../src/cli/commands/project.ts'
import { run as token } from '../src/cli/commands/token.ts'
import { type AdminGateway, OWNER, startAdminGateway } from './kit/admin.ts'

const COMMANDS = { project, token }
let directory: string
let gateway: AdminGateway
let server: ReturnType<typeof Bun.serve>

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gatehouse-cli-api-'))
  const stored = await startAdminGateway({}, { store_url: `sqlite:${directory}/gatehouse.db` })
  await stored[Symbol.asyncDispose]()
  gateway = await startAdminGateway()
  server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: (request) => gateway.instance.fetch(request) })
})
afterEach(async () => {
  await server.stop(true)
  await gateway[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

type Environment = Record<string, string>
const onStore = (): Environment => ({ GATEHOUSE_DATA_DIR: directory })
const onGateway = (): Environment => ({
  GATEHOUSE_URL: `http://127.0.0.1:${server.port}`,
  GATEHOUSE_ADMIN_TOKEN: OWNER,
  GATEHOUSE_DATA_DIR: '/nonexistent',
})

/** What a command prints, or the message of its error; ids, secrets and times replaced. */
async function call(environment: Environment, [command, ...args]: string[]) {
  const printed = { out: '', err: '' }
  const terminal = {
    out(text: string) {
      printed.out += text
    },
    err(text: string) {
      printed.err += text
    },
    environment,
    cwd: directory,
    color: false,
    interactive: false,
  }
  const code = await COMMANDS[command as keyof typeof COMMANDS](args, terminal).catch((error: Error) => error.message)
  return { code, ...printed }
}
const same = (result: Awaited<ReturnType<typeof call>>) =>
  JSON.parse(
    JSON.stringify(result)
      .replace(/(tok|proj)_\w{16}/g, '$1_ID')
      .replace(/sk-\w{6,48}/g, 'sk-SECRET')
      .replace(/\b\d{10}\b/g, '0')
      .replace(/\d{4}-\d\d-\d\d( \d\d:\d\d)?/g, 'TIME'),
  )

const STEPS = [
  'project create mobile --limit requests_per_minute=600 --budget 50/month --label team=a',
  'project create web --quiet',
  'project create mobile',
  'project update mobile --models sandbox/* --limit tokens_per_day=2000',
  'project show mobile',
  'project show nothing',
  'project disable web',
  'project enable web',
  'token create --name laptop',
  'token create --name app --project mobile --limit requests_per_minute=60 --quiet',
  'token create --name lost --project nothing',
  'token update app --name phone --limit requests_per_minute=none --allow-address 203.0.113.0/24',
  'token update phone --project none',
  'token list',
  'token list --project mobile',
  'token show phone',
  'token show absent',
  'token rotate laptop --overlap 1h',
  'token rotate laptop --overlap soon',
  'token revoke laptop',
  'token update laptop --name other',
  'project list',
  'project delete mobile',
  'project list',
]

describe('a command on tokens and projects', () => {
  test('prints the same on a running gateway as on the store', async () => {
    for (const json of ['', ' --json']) {
      for (const step of STEPS) {
        const args = `${step}${json}`.replaceAll('mobile', `mobile${json.length}`).split(' ')
        expect([args, same(await call(onGateway(), args))]).toEqual([args, same(await call(onStore(), args))])
      }
    }
    const { data } = await gateway.read<{ data: { actor: string }[] }>('/audit?action=token.revoke')
    expect(data.map(({ actor }) => actor)).toEqual(['environment', 'environment'])
  })

  test('shows more rows than a page of the API has', async () => {
    for (let index = 0; index < 205; index++) await gateway.instance.tokens.issue({ name: `t${index}` })
    const { out } = await call(onGateway(), ['token', 'list', '--json'])
    expect(JSON.parse(out).tokens).toHaveLength(206)
  })

  test('works on the store that a flag names, and where no admin token is set', async () => {
    const { GATEHOUSE_ADMIN_TOKEN: _, ...without } = onGateway()
    for (const [environment, args] of [
      [onGateway(), ['token', 'create', '--name', 'here', '--data-dir', directory]],
      [{ ...without, ...onStore() }, ['token', 'create', '--name', 'here']],
    ] as const) {
      expect((await call(environment, [...args])).code).toBe(0)
    }
    expect(await gateway.instance.tokens.list()).toHaveLength(1)
  })

  const failures: [string, () => Environment, string[], string][] = [
    [
      'an unreachable gateway',
      () => ({ ...onGateway(), GATEHOUSE_URL: 'http://127.0.0.1:1' }),
      [],
      'No gateway answers at 127.0.0.1:1',
    ],
    [
      'a refused token',
      () => ({ ...onGateway(), GATEHOUSE_ADMIN_TOKEN: 'gha-wrong-wrong-wrong-wrong' }),
      [],
      'refuses the admin token',
    ],
    ['an API token', () => ({ ...onGateway(), GATEHOUSE_ADMIN_TOKEN: gateway.token }), [], 'This is an API token'],
    [
      'plain http to another machine',
      () => ({ ...onGateway(), GATEHOUSE_URL: 'http://192.0.2.1' }),
      [],
      'without encryption',
    ],
    [
      'plain http to a name like loopback',
      () => ({ ...onGateway(), GATEHOUSE_URL: 'http://127.0.0.1.example' }),
      [],
      'without encryption',
    ],
    ['an address that is none', () => ({ ...onGateway(), GATEHOUSE_URL: 'gateway' }), [], 'must be such as https://'],
    ['--url without an admin token', onStore, ['--url', 'http://127.0.0.1:1'], 'GATEHOUSE_ADMIN_TOKEN'],
    ['--url with a store', onGateway, ['--url', 'http://127.0.0.1:1', '--data-dir', '/x'], 'give one of them'],
  ]
  for (const [name, environment, args, message] of failures) {
    test(`explains ${name}`, async () => {
      const given = environment()
      const { code } = await call(given, ['token', 'list', ...args])
      expect(code).toBeString()
      expect(code).toContain(message)
      expect(code).not.toContain(given.GATEHOUSE_ADMIN_TOKEN ?? 'no token')
    })
  }

  test('says which role is needed', async () => {
    const viewer = await gateway.read<{ secret: string }>('/admin-tokens', { json: { name: 'v', role: 'viewer' } })
    const environment = { ...onGateway(), GATEHOUSE_ADMIN_TOKEN: viewer.secret }
    expect((await call(environment, ['token', 'list'])).code).toBe(0)
    const { code } = await call(environment, ['token', 'create', '--name', 'x'])
    expect(code).toContain('The role viewer does not have the right "manage"; owner or operator has.')
  })

  test('sends the admin token to no address of a redirect', async () => {
    const seen: (string | null)[] = []
    const there = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        seen.push(request.headers.get('authorization'))
        return Response.json({ data: [] })
      },
    })
    const here = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: () => Response.redirect(`http://127.0.0.1:${there.port}/`),
    })
    const environment = { ...onGateway(), GATEHOUSE_URL: `http://127.0.0.1:${here.port}` }
    const { code } = await call(environment, ['token', 'list'])
    await Promise.all([here.stop(true), there.stop(true)])
    expect([code, seen]).toEqual([expect.stringContaining('not as the admin API'), []])
  })
})
