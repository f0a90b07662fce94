/** Files through the whole gateway, with the official clients. */
import { afterAll, describe, expect, it } from 'bun:test'
import OpenAI, { toFile } from 'openai'
import { configOf } from './kit/gateway.ts'
import { perTest } from './kit/per-test.ts'
import { openPort } from './kit/served.ts'

const { open } = perTest()
const port = await openPort()
afterAll(() => port.close())
const client = new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0 })
const PNG = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

const other = async () => new OpenAI({ apiKey: await port.tokenFor(['*']), baseURL: port.url, maxRetries: 0 })
const upload = (text = '{"a":1}\n', name = 'a.jsonl') =>
  client.files.create({ file: new File([text], name), purpose: 'batch' })

/** A form whose parts are in this order. */
const formOf = (...parts: [name: string, value: string | File][]) => {
  const form = new FormData()
  for (const [name, value] of parts) form.append(name, value)
  return form
}

/** The error of a call. */
const failure = (call: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(call).then(
    () => undefined,
    (thrown) => thrown,
  )

describe('the openai client', () => {
  it('uploads a file, reads it, lists it and deletes it', async () => {
    const file = await upload()
    expect(file).toMatchObject({ object: 'file', bytes: 8, filename: 'a.jsonl', purpose: 'batch', status: 'processed' })
    expect(file.id).toMatch(/^file-gh[a-z0-9]{9}[A-Za-z0-9]{15}$/)
    expect((file.expires_at ?? 0) - file.created_at).toBe(30 * 86_400)
    expect(await client.files.retrieve(file.id)).toEqual(file)
    const content = await client.files.content(file.id)
    expect(content.headers.get('content-type')).toBe('application/octet-stream')
    expect(content.headers.get('content-disposition')).toBe('attachment; filename="a.jsonl"')
    expect(await content.text()).toBe('{"a":1}\n')
    expect((await client.files.list()).data.map(({ id }) => id)).toContain(file.id)
    expect(await client.files.delete(file.id)).toEqual({ id: file.id, object: 'file', deleted: true })
    expect(await failure(client.files.retrieve(file.id))).toMatchObject({ status: 404, code: 'file_not_found' })
    expect(await failure(client.files.content(file.id))).toMatchObject({ status: 404, code: 'file_not_found' })
    expect(await failure(client.files.delete(file.id))).toMatchObject({ status: 404, code: 'file_not_found' })
  })

  it('lists page by page, also while files are deleted', async () => {
    const owner = await other()
    const ids: string[] = []
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      const purpose = name < 'd' ? 'user_data' : 'vision'
      ids.push((await owner.files.create({ file: await toFile(Buffer.from(name), name), purpose })).id)
    }
    const listed: string[] = []
    for await (const { id } of owner.files.list({ limit: 2, order: 'asc' })) listed.push(id)
    expect(listed).toEqual(ids)
    expect((await owner.files.list({ purpose: 'vision' })).data.map(({ id }) => id)).toEqual(ids.slice(3).reverse())
    for await (const { id } of owner.files.list({ limit: 2 })) await owner.files.delete(id)
    expect((await owner.files.list()).data).toEqual([])
  })

  it('reads no file of another token', async () => {
    const { id } = await upload()
    const stranger = await other()
    for (const read of [
      () => stranger.files.retrieve(id),
      () => stranger.files.content(id),
      () => stranger.files.delete(id),
    ])
      expect(await failure(read())).toMatchObject({ status: 404, code: 'file_not_found' })
    expect((await stranger.files.list()).data).toEqual([])
    expect((await client.files.retrieve(id)).id).toBe(id)
  })

  it('keeps a file as long as it says', async () => {
    const expires_after = { anchor: 'created_at', seconds: 3_600 } as const
    const file = await client.files.create({ file: new File(['a'], 'a'), purpose: 'user_data', expires_after })
    expect((file.expires_at ?? 0) - file.created_at).toBe(3_600)
    for (const seconds of [3_599, 30 * 86_400 + 1]) {
      const call = client.files.create({
        file: new File(['a'], 'a'),
        purpose: 'user_data',
        expires_after: { anchor: 'created_at', seconds },
      })
      expect(await failure(call)).toMatchObject({ code: 'invalid_value', param: 'expires_after[seconds]' })
    }
  })
})

describe('POST /v1/files', () => {
  it('takes its fields in any order, and sees the type by the bytes', async () => {
    const gateway = await open()
    const png = new File([PNG, new Uint8Array(100_000)], 'a.txt', { type: 'text/plain' })
    for (const form of [formOf(['file', png], ['purpose', 'vision']), formOf(['purpose', 'vision'], ['file', png])]) {
      const answer = await gateway.call('/v1/files', { form })
      expect(answer.status).toBe(200)
      const { id, bytes } = (await answer.json()) as { id: string; bytes: number }
      expect(bytes).toBe(100_008)
      const content = await gateway.call(`/v1/files/${id}/content`)
      expect(content.headers.get('content-type')).toBe('image/png')
      expect(content.headers.get('x-content-type-options')).toBe('nosniff')
      const part = await gateway.call(`/v1/files/${id}/content`, { headers: { range: 'bytes=1-3' } })
      expect([part.status, await part.text()]).toEqual([206, 'PNG'])
    }
  })

  it.each([
    ['assistants', 'unsupported_value'],
    ['fine-tune', 'unsupported_value'],
    ['evals', 'unsupported_value'],
    ['batch_output', 'unsupported_value'],
    ['toString', 'invalid_value'],
  ])('refuses the purpose %s by name', async (purpose, code) => {
    const gateway = await open()
    for (const form of [
      formOf(['purpose', purpose], ['file', new File(['a'], 'a')]),
      formOf(['file', new File(['a'], 'a')], ['purpose', purpose]),
    ]) {
      const answer = await gateway.call('/v1/files', { form })
      expect(answer.status).toBe(400)
      expect(await answer.json()).toMatchObject({ error: { code, param: 'purpose' } })
    }
  })

  it('bounds files by their purpose, on both sides of the limit', async () => {
    const files = { ...configOf().files, max_bytes: 1_000, batch_max_bytes: 100 }
    const gateway = await open({ files })
    const status = async (purpose: string, bytes: number, isFirst = false) => {
      const file = new File(['a'.repeat(bytes)], 'a')
      const form = isFirst ? formOf(['file', file], ['purpose', purpose]) : formOf(['purpose', purpose], ['file', file])
      const answer = await gateway.call('/v1/files', { form })
      return answer.status === 200 ? 200 : ((await answer.json()) as { error: { code: string } }).error.code
    }
    for (const isFirst of [true, false]) {
      expect(await status('batch', 100, isFirst)).toBe(200)
      expect(await status('batch', 101, isFirst)).toBe('request_too_large')
      expect(await status('user_data', 1_000, isFirst)).toBe(200)
      expect(await status('user_data', 1_001, isFirst)).toBe('request_too_large')
    }
  })
})
