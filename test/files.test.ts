/** Files through the whole gateway, with the official clients. */
import { afterAll, describe, expect, it } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI, { toFile } from 'openai'
import { configOf, type TestGateway } from './kit/gateway.ts'
import { perTest } from './kit/per-test.ts'
import { openPort } from './kit/served.ts'

const { open } = perTest()
const port = await openPort()
afterAll(() => port.close())
const client = new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0 })
const ADMIN = 'the-admin-token-of-a-test'
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
    expect(file).toMatchObject({ object: 'file', bytes: 8, filename: 'a.jsonl', purpose: 'batch', status: 'error' })
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

describe('the anthropic client', () => {
  const anthropic = new Anthropic({ apiKey: port.token, baseURL: port.url.replace(/\/v1$/, ''), maxRetries: 0 })
  const { files } = anthropic.beta

  it('uploads a file, reads it, lists it and deletes it', async () => {
    const file = await files.upload({ file: new File(['%PDF-1.7'], 'a.pdf', { type: 'application/pdf' }) })
    expect(file).toMatchObject({ type: 'file', filename: 'a.pdf', mime_type: 'application/pdf', size_bytes: 8 })
    expect([file.downloadable, file.expires_at]).toEqual([true, null])
    expect(await files.retrieveMetadata(file.id)).toEqual(file)
    expect(await (await files.download(file.id)).text()).toBe('%PDF-1.7')
    expect((await files.list()).data).toContainEqual(file)
    // The same file in the other form.
    expect(await client.files.retrieve(file.id)).toMatchObject({ bytes: 8, purpose: 'user_data' })
    expect(await files.delete(file.id)).toEqual({ id: file.id, type: 'file_deleted' })
    const error = await failure(files.retrieveMetadata(file.id))
    expect(error).toMatchObject({ status: 404, error: { type: 'error', error: { type: 'not_found_error' } } })
  })

  it('lists page by page, in both directions', async () => {
    const token = await port.tokenFor(['*'])
    const own = new Anthropic({ apiKey: token, baseURL: port.url.replace(/\/v1$/, ''), maxRetries: 0 }).beta.files
    const ids: string[] = []
    for (const name of ['a', 'b', 'c', 'd', 'e']) ids.unshift((await own.upload({ file: new File(['x'], name) })).id)
    const listed: string[] = []
    for await (const { id } of own.list({ limit: 2 })) listed.push(id)
    expect(listed).toEqual(ids)
    const page = async (query: string) => {
      const headers = { 'x-api-key': token, 'anthropic-version': '2023-06-01' }
      const answer = await fetch(`${port.url}/files?${query}`, { headers })
      const { data, ...rest } = (await answer.json()) as { data: { id: string }[]; has_more: boolean }
      return { ids: data.map(({ id }) => id), has_more: rest.has_more }
    }
    expect(await page(`limit=2&after_id=${ids[1]}`)).toEqual({ ids: ids.slice(2, 4), has_more: true })
    expect(await page(`limit=2&before_id=${ids[3]}`)).toEqual({ ids: ids.slice(1, 3), has_more: true })
    expect(await page(`limit=3&before_id=${ids[3]}`)).toEqual({ ids: ids.slice(0, 3), has_more: false })
    expect(await page(`ids[]=${ids[4]}&ids[]=${ids[1]}`)).toEqual({
      ids: [ids[1] ?? '', ids[4] ?? ''],
      has_more: false,
    })
  })

  it('keeps a file as long as it says, and has no purposes', async () => {
    const file = await files.upload({ file: new File(['a'], 'a'), expires_in_seconds: 3_600 })
    expect(Date.parse(file.expires_at ?? '') - Date.parse(file.created_at)).toBe(3_600_000)
    const form = formOf(['purpose', 'batch'], ['file', new File(['a'], 'a')])
    const headers = { 'anthropic-version': '2023-06-01' }
    const answer = await port.gateway.call('/v1/files', { form, headers })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', details: { error_code: 'unsupported_parameter', param: 'purpose' } },
    })
  })
})

describe('what is stored', () => {
  const post = (gateway: TestGateway, bytes: number, headers: Record<string, string> = {}) =>
    gateway.call('/v1/files', {
      form: formOf(['purpose', 'user_data'], ['file', new File(['a'.repeat(bytes)], 'a')]),
      headers,
    })
  const codeOf = async (answer: Response) =>
    answer.ok ? 200 : ((await answer.json()) as { error: { code: string } }).error.code

  it('is bounded for each token, in files and bytes, on both sides of the limits', async () => {
    const gateway = await open({ tokens: { models: ['*'], storage: { files: 2, file_bytes: 1_000 } } })
    expect(await codeOf(await post(gateway, 1_001))).toBe('storage_quota_exceeded')
    expect(await codeOf(await post(gateway, 999))).toBe(200)
    expect(await codeOf(await post(gateway, 2))).toBe('storage_quota_exceeded')
    expect(await codeOf(await post(gateway, 1))).toBe(200)
    const refused = await post(gateway, 1)
    expect(await refused.text()).toContain('tokens.storage.files')
    const { data } = (await (await gateway.call('/v1/files')).json()) as { data: { id: string }[] }
    expect(data.length).toBe(2)
    await gateway.call(`/v1/files/${data[0]?.id}`, { method: 'DELETE' })
    expect(await codeOf(await post(gateway, 1))).toBe(200)
  })

  it('is bounded for all tokens of a project together', async () => {
    const gateway = await open({ files: { ...configOf().files, project_files: 2 } })
    const project = await gateway.instance.projects.create({ name: 'team' })
    const secretOf = async () => {
      const { secret } = await gateway.instance.tokens.issue({ name: 'a', project_id: project.project_id })
      return { authorization: `Bearer ${secret}` }
    }
    const [one, two] = [await secretOf(), await secretOf()]
    expect(await codeOf(await post(gateway, 1, one))).toBe(200)
    expect(await codeOf(await post(gateway, 1, two))).toBe(200)
    const refused = await post(gateway, 1, one)
    expect(await refused.text()).toMatch(/This project stores 2 files.*files\.project_files/)
    expect(await codeOf(await post(gateway, 1))).toBe(200)
  })

  it('bounds a body that announces no length, while it arrives', async () => {
    const gateway = await open({ tokens: { models: ['*'], storage: { file_bytes: 1_000_000 } } })
    let sent = 0
    const head = '--edge\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(sent === 0 ? Buffer.from(head) : Buffer.alloc(100_000))
        sent += 100_000
      },
    })
    const answer = await gateway.instance.fetch(
      new Request('http://gatehouse.test/v1/files', {
        method: 'POST',
        body,
        headers: {
          authorization: `Bearer ${gateway.token}`,
          'content-type': 'multipart/form-data; boundary=edge',
        },
      }),
    )
    expect(await codeOf(answer)).toBe('storage_quota_exceeded')
    expect(sent).toBeLessThan(10_000_000)
    expect(((await (await gateway.call('/v1/files')).json()) as { data: unknown[] }).data).toEqual([])
  })

  it.each([
    ['a/../../etc/passwd', 'passwd'],
    ['C:\\temp\\a.txt', 'a.txt'],
    ['a\u0000\u0007b.txt', 'ab.txt'],
    ['', 'unnamed'],
    ['x'.repeat(300), 'x'.repeat(255)],
    ['"; filename="b.html', '"; filename="b.html'],
    ['日本語.txt', '日本語.txt'],
  ])('has a name that leads nowhere: %p', async (given, name) => {
    const gateway = await open()
    const escaped = given.replace(/["\\]/g, '\\$&')
    const body = `--edge\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n--edge\r\ncontent-disposition: form-data; name="file"; filename="${escaped}"\r\ncontent-type: text/html\r\n\r\n<script>alert(1)</script>\r\n--edge--\r\n`
    const answer = await gateway.instance.fetch(
      new Request('http://gatehouse.test/v1/files', {
        method: 'POST',
        body,
        headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'multipart/form-data; boundary=edge' },
      }),
    )
    const file = (await answer.json()) as { id: string; filename: string }
    expect(file.filename).toBe(name)
    const content = await gateway.call(`/v1/files/${file.id}/content`)
    expect(content.headers.get('content-type')).toBe('application/octet-stream')
    expect(content.headers.get('content-disposition')).toMatch(/^attachment; filename="[\w.-]+"$/)
    expect(content.headers.get('content-security-policy')).toStartWith('sandbox;')
  })

  it('refuses forms without a file, with two, or with an unknown field', async () => {
    const gateway = await open()
    const file = ['file', new File(['a'], 'a')] as [string, File]
    for (const [parts, code] of [
      [[['purpose', 'batch']], 'missing_required_parameter'],
      [[file], 'missing_required_parameter'],
      [
        [
          ['purpose', 'batch'],
          ['file', 'text'],
        ],
        'invalid_value',
      ],
      [
        [
          ['purpose', 'batch'],
          ['file', new File([], 'a')],
        ],
        'invalid_value',
      ],
      [[['purpose', 'batch'], file, file], 'invalid_value'],
      [[['purpose', 'batch'], file, ['other', '1']], 'unsupported_parameter'],
      [[['purpose', 'batch'], file, ['expires_after', 'x'.repeat(5_000)]], 'invalid_value'],
      [[['purpose', 'batch'], file, ['expires_after', 'null']], 'invalid_value'],
    ] as [[string, string | File][], string][]) {
      const answer = await gateway.call('/v1/files', { form: formOf(...parts) })
      expect([parts.map(([name]) => name), await codeOf(answer)]).toEqual([parts.map(([name]) => name), code])
    }
    expect(((await (await gateway.call('/v1/files')).json()) as { data: unknown[] }).data).toEqual([])
  })
})

describe('the admin API', () => {
  it('lists files without their content, and deletes those of a revoked token', async () => {
    const gateway = await open({ admin_token: ADMIN })
    const project = await gateway.instance.projects.create({ name: 'team' })
    const { token, secret } = await gateway.instance.tokens.issue({ name: 'a', project_id: project.project_id })
    const upload = async (headers: Record<string, string> = {}) => {
      const form = formOf(['purpose', 'user_data'], ['file', new File(['a'], 'a.txt')])
      return ((await (await gateway.call('/v1/files', { form, headers })).json()) as { id: string }).id
    }
    const first = await upload()
    gateway.clock.advance(1_000)
    const second = await upload({ authorization: `Bearer ${secret}` })
    const admin = async (path: string, method = 'GET') => {
      const answer = await gateway.call(`/admin/v1${path}`, { method, headers: { authorization: `Bearer ${ADMIN}` } })
      return (await answer.json()) as { data: { file_id: string }[]; next_cursor: string | null; deleted: boolean }
    }
    const ids = async (query = '') => (await admin(`/files${query}`)).data.map(({ file_id }) => file_id)
    expect(await ids()).toEqual([second, first])
    expect(await ids(`?project_id=${project.project_id}`)).toEqual([second])
    expect(await ids(`?token_id=${token.token_id}`)).toEqual([second])
    expect(await ids('?purpose=vision')).toEqual([])
    const page = await admin('/files?limit=1')
    expect(await ids(`?limit=1&cursor=${page.next_cursor}`)).toEqual([first])
    expect(JSON.stringify(page)).not.toContain('output_key')
    expect(await admin(`/files/${second}`)).toEqual(page.data[0] as never)
    const path = `/admin/v1/files/${second}/content`
    const content = await gateway.call(path, { headers: { authorization: `Bearer ${ADMIN}` } })
    expect([await content.text(), content.headers.get('cache-control')]).toEqual(['a', 'no-store'])
    expect(content.headers.get('content-disposition')).toBe('attachment; filename="a.txt"')
    expect(JSON.stringify(await admin('/audit'))).toContain('file.read_content')
    await gateway.instance.tokens.revoke(token.token_id)
    expect(await admin(`/files/${second}`, 'DELETE')).toMatchObject({ file_id: second, deleted: true })
    expect(await ids()).toEqual([first])
    expect(await admin(`/files/${second}`, 'DELETE')).toMatchObject({ error: { code: 'object_not_found' } })
    expect(JSON.stringify(await admin('/audit'))).toContain('file.delete')
  })
})
