/** Rotating the key of a provider while the gateway runs: from a file, and from an environment file. */
import { afterEach, describe, expect, it } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile, type ServeProcess, serveDirectory, startServe, writeConfig } from './kit/serve-process.ts'
import { completion, startVendor, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(provider: object, parts: { server?: object; files: Record<string, string> }) {
  const { directory, remove } = serveDirectory()
  const vendor = startVendor()
  vendor.otherwise(whole(completion('Hello')))
  closing.push(remove, vendor.stop)
  for (const [name, text] of Object.entries(parts.files)) writeFileSync(join(directory, name), text)
  writeConfig(directory, {
    sandbox: false,
    server: { drain_seconds: 0, ...parts.server },
    providers: { v: { kind: 'chatcompat', base_url: vendor.url, ...provider } },
    models: { 'v/m': {} },
  })
  const gateway = await startServe({ directory, environment: { GATEHOUSE_ENV_FILE: 'vars', UNUSED: '1' } })
  closing.push(async () => {
    gateway.child.kill('SIGKILL')
    await gateway.child.exited
  })
  return { gateway, vendor, directory }
}

/** The key that the provider gets with the next call. */
async function keyOf(gateway: ServeProcess, vendor: Vendor): Promise<string | undefined> {
  expect((await gateway.chat('v/m')).status).toBe(200)
  return vendor.requests.at(-1)?.headers.authorization
}

describe('the key of a provider', () => {
  it('is the new one once its file has changed, without a restart', async () => {
    const { gateway, vendor, directory } = await start(
      { key_file: 'v.key' },
      { files: { 'v.key': 'first\n', vars: '' } },
    )
    expect(await keyOf(gateway, vendor)).toBe('Bearer first')
    replaceFile(join(directory, 'v.key'), 'second\n')
    const [line] = await gateway.until('configuration applied')
    expect(line).toMatchObject({ changed: 'providers ~v' })
    expect(await keyOf(gateway, vendor)).toBe('Bearer second')
    expect(JSON.stringify(gateway.lines)).not.toContain('second')
  })

  it('is the new one after SIGHUP, where it stands in the environment file', async () => {
    const files = { vars: '# keys\nV_KEY="first"\n' }
    const { gateway, vendor, directory } = await start({ key: '${V_KEY}' }, { files })
    expect(await keyOf(gateway, vendor)).toBe('Bearer first')
    replaceFile(join(directory, 'vars'), 'V_KEY="second"\n')
    gateway.child.kill('SIGHUP')
    await gateway.until('configuration applied')
    expect(await keyOf(gateway, vendor)).toBe('Bearer second')
  })

  it('is that of the environment file as it is now in a worker that SIGUSR2 starts', async () => {
    const files = { vars: 'V_KEY=first\nOLD=1\n' }
    const { gateway, vendor, directory } = await start({ key: '${V_KEY}-${OLD:-0}' }, { files, server: { workers: 2 } })
    expect(await keyOf(gateway, vendor)).toBe('Bearer first-1')
    replaceFile(join(directory, 'vars'), 'V_KEY=second\n')
    gateway.child.kill('SIGUSR2')
    await gateway.until('rolling restart done')
    for (let calls = 0; calls < 8; calls++) expect(await keyOf(gateway, vendor)).toBe('Bearer second-0')
  })
})
