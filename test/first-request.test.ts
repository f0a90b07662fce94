/** The request that the first start prints: it works with the models that there are after discovery. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { completion, failure, startVendor, whole } from './kit/vendor.ts'

const COMMAND = join(import.meta.dir, '../bin/gatehouse')

let directory: string
const open: (() => Promise<unknown>)[] = []
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-first-'))
})
afterEach(async () => {
  for (const close of open.splice(0)) await close()
  rmSync(directory, { recursive: true })
})

/** A vendor with these models; undefined: it refuses to list them. */
function vendorWith(ids: string[] | undefined) {
  const vendor = startVendor()
  const list = ids ? whole({ object: 'list', data: ids.map((id) => ({ id, object: 'model' })) }) : failure(401)
  vendor.otherwise((wire) => (wire.request.method === 'GET' ? list : whole(completion('Hello')))(wire))
  open.push(vendor.stop)
  return vendor
}

/** Starts a gateway and sends the request that it prints. */
async function sendPrinted(config: object) {
  writeFileSync(join(directory, 'gatehouse.yaml'), JSON.stringify(config))
  const child = Bun.spawn([COMMAND, 'serve', '--port', '0'], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '' },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  open.push(() => {
    child.kill('SIGKILL')
    return child.exited
  })
  let out = ''
  for await (const piece of child.stdout) {
    out += new TextDecoder().decode(piece)
    if (out.includes('curl ') && out.endsWith('\n')) break
  }
  const command = out.slice(out.indexOf('curl '))
  const [, url = ''] = /curl (\S+)/.exec(command) ?? []
  const [, secret = ''] = /Authorization: (Bearer [^"]+)"/.exec(command) ?? []
  const [, body] = /-d '(.*)'/.exec(command) ?? []
  const headers = { authorization: secret, 'content-type': 'application/json' }
  const response = await fetch(url, body === undefined ? { headers } : { method: 'POST', headers, body })
  return { out, status: response.status, model: body === undefined ? undefined : JSON.parse(body).model }
}

test('names a model that discovery found, not a well-known one that the provider lacks', async () => {
  const { url } = vendorWith(['new-model'])
  const d = { preset: 'deepseek', base_url: url, key: 'sk-0123456789', discover: true }
  const { out, ...sent } = await sendPrinted({ sandbox: false, providers: { d } })
  expect(sent).toEqual({ status: 200, model: 'd/new-model' })
  expect(out).toContain('Discovery is still looking for providers and models.')
})

test('names a model of a provider that answered, where another did not', async () => {
  const [refusing, answering] = [vendorWith(undefined), vendorWith(['works'])]
  const a = { preset: 'deepseek', base_url: refusing.url, key: 'sk-0123456789', discover: true }
  const b = { base_url: answering.url, key: 'sk-0123456789', discover: true }
  const config = {
    sandbox: false,
    providers: { a, b },
    models: { 'a-team/x': { targets: [{ provider: 'a', model: 'x' }] } },
  }
  expect(await sendPrinted(config)).toMatchObject({ status: 200, model: 'b/works' })
})

test('names the sandbox where there is one', async () => {
  const { url } = vendorWith(['a'])
  const config = { providers: { a: { base_url: url, discover: true } } }
  expect(await sendPrinted(config)).toMatchObject({ status: 200, model: 'sandbox/general' })
})

test('lists the models where none is for chat', async () => {
  const { url } = vendorWith(undefined)
  const config = {
    sandbox: false,
    providers: { a: { kind: 'chatcompat-video', base_url: url } },
    models: { 'a/x': { families: ['video-generation'] } },
  }
  expect(await sendPrinted(config)).toMatchObject({ status: 200, model: undefined })
})
