/** Files of the gateway as inputs of calls: each client API, at vendors of each protocol, which never saw the file. */
import { describe, expect, it } from 'bun:test'
import { perTest } from './kit/per-test.ts'
import { completion, type Vendor, whole } from './kit/vendor.ts'

type Json = Record<string, unknown>

const { open, vendorWith } = perTest()

const PDF = Buffer.from('%PDF-1.7 of a test, with an end of its own')
const PNG = Buffer.from('\x89PNG\r\n\x1a\nof a test', 'latin1')
const TEXT = Buffer.from('A text of a test.')
const ABSENT = `file-gh${'0'.repeat(24)}`

const KINDS = {
  chat: { base: {} },
  responses: { base: { kind: 'responses-compat' as const } },
  messages: { base: { kind: 'messages-compat' as const } },
  contentgen: { base: { kind: 'contentgen-compat' as const } },
}

async function start(settings: Parameters<typeof open>[0] = {}) {
  const vendors: Record<string, Vendor> = {}
  const providers: NonNullable<typeof settings.providers> = {}
  const models: NonNullable<typeof settings.models> = {}
  for (const [name, { base }] of Object.entries(KINDS)) {
    const vendor = vendorWith()
    vendor.otherwise(whole({ error: { message: 'no' } }, { status: 400 }))
    vendors[name] = vendor
    providers[name] = { ...base, base_url: vendor.url, key: 'sk-vendor' }
    models[`${name}/m`] = { targets: [{ provider: name, model: 'm' }] }
  }
  vendors.films = vendorWith()
  vendors.films.otherwise(whole({ id: 'video_1', object: 'video', status: 'queued' }))
  providers.films = { kind: 'chatcompat-video', base_url: vendors.films.url, key: 'sk-vendor' }
  const gateway = await open({ providers, models, ...settings })
  const secret = async () => (await gateway.instance.tokens.issue({ name: 'other' })).secret
  async function upload(bytes: Uint8Array<ArrayBuffer>, name: string, headers: Record<string, string> = {}) {
    const form = new FormData()
    form.append('purpose', 'user_data')
    form.append('file', new File([bytes], name))
    return ((await (await gateway.call('/v1/files', { form, headers })).json()) as { id: string }).id
  }
  return { gateway, vendors, upload, secret }
}

/** A request of each client API that names a document and an image. */
const REQUESTS: Record<string, { path: string; body(document: string, image: string): Json }> = {
  'chat completions': {
    path: '/v1/chat/completions',
    body: (document, image) => ({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'file', file: { file_id: document } },
            { type: 'file', file: { file_id: image } },
          ],
        },
      ],
    }),
  },
  responses: {
    path: '/v1/responses',
    body: (document, image) => ({
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_file', file_id: document },
            { type: 'input_image', file_id: image, detail: 'auto' },
          ],
        },
      ],
    }),
  },
  messages: {
    path: '/v1/messages',
    body: (document, image) => ({
      max_tokens: 100,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'document', source: { type: 'file', file_id: document } },
            { type: 'image', source: { type: 'file', file_id: image } },
          ],
        },
      ],
    }),
  },
}

describe.each(Object.entries(REQUESTS))('%s', (_, { path, body }) => {
  it.each(Object.keys(KINDS))('sends the data of files to a %s vendor, not their ids', async (kind) => {
    const { gateway, vendors, upload } = await start()
    const [document, image] = [await upload(PDF, 'a.pdf'), await upload(PNG, 'b.png')]
    await gateway.call(path, { json: { model: `${kind}/m`, ...body(document, image) } })
    const sent = vendors[kind]?.requests[0]?.body ?? ''
    expect(sent).toContain(PDF.toString('base64'))
    expect(sent).toContain(PNG.toString('base64'))
    expect(sent).not.toContain('file-gh')
  })

  it('refuses files of another token, and those that were deleted, before anything is sent', async () => {
    const { gateway, vendors, upload, secret } = await start()
    const image = await upload(PNG, 'b.png')
    const theirs = await upload(PDF, 'a.pdf', { authorization: `Bearer ${await secret()}` })
    const deleted = await upload(PDF, 'a.pdf')
    await gateway.call(`/v1/files/${deleted}`, { method: 'DELETE' })
    for (const document of [theirs, deleted, ABSENT]) {
      const answer = await gateway.call(path, { json: { model: 'chat/m', ...body(document, image) } })
      expect(answer.status).toBe(404)
      const { error } = (await answer.json()) as { error: Json & { details?: Json } }
      expect(error.code ?? error.details?.error_code).toBe('file_not_found')
      expect(String(error.param ?? error.details?.param)).toEndWith('file_id')
    }
    expect(vendors.chat?.requests).toEqual([])
  })

  it('bounds the bytes of the files of one request, on both sides of the limit', async () => {
    const { gateway, vendors, upload } = await start({ server: { max_body_bytes: 4_000 } })
    const image = await upload(PNG, 'b.png')
    const padded = (bytes: number) => Buffer.concat([PDF, Buffer.alloc(bytes - PDF.length, 'a')])
    // Of 4,000 characters of base64, the image takes 24.
    const [fits, exceeds] = [await upload(padded(2_982), 'a.pdf'), await upload(padded(2_983), 'a.pdf')]
    await gateway.call(path, { json: { model: 'chat/m', ...body(fits, image) } })
    expect(vendors.chat?.requests.length).toBe(1)
    const answer = await gateway.call(path, { json: { model: 'chat/m', ...body(exceeds, image) } })
    expect(answer.status).toBe(413)
    expect(vendors.chat?.requests.length).toBe(1)
  })
})

describe('a limited token', () => {
  it('may name its own files, and no files of the operator at the vendor', async () => {
    const { gateway, vendors, upload } = await start()
    const { secret } = await gateway.instance.tokens.issue({ name: 'limited', models: ['messages/m'] })
    const headers = { authorization: `Bearer ${secret}` }
    const [document, image] = [await upload(PDF, 'a.pdf', headers), await upload(PNG, 'b.png', headers)]
    const call = (one: string, two: string) =>
      gateway.call('/v1/messages', { headers, json: { model: 'messages/m', ...REQUESTS.messages?.body(one, two) } })
    await call(document, image)
    expect(vendors.messages?.requests[0]?.body).toContain(PDF.toString('base64'))
    expect((await call('file_011CNha8iCJcU1wXNR6q4V8w', 'file_2')).status).toBe(400)
    expect(vendors.messages?.requests.length).toBe(1)
  })
})

describe('POST /v1/messages', () => {
  it.each(['latin1', 'utf-16le'] as const)('finds an id in a text of %s characters, at its end', async (encoding) => {
    const { gateway, vendors, upload } = await start()
    const [document, image] = [await upload(PDF, 'a.pdf'), await upload(PNG, 'b.png')]
    const text = encoding === 'latin1' ? 'plain' : 'voilà 漢字'
    const { body } = REQUESTS['chat completions'] as (typeof REQUESTS)[string]
    const json = { model: 'chat/m', user: text, ...body(document, image) }
    await gateway.call('/v1/chat/completions', { json })
    expect(vendors.chat?.requests[0]?.body).toContain(PDF.toString('base64'))
  })

  it('passes the ids of vendors unchanged', async () => {
    const { gateway, vendors } = await start()
    const json = { model: 'messages/m', ...REQUESTS.messages?.body('file_011CNha8iCJcU1wXNR6q4V8w', 'file_2') }
    await gateway.call('/v1/messages', { json })
    expect(vendors.messages?.requests[0]?.body).toContain('file_011CNha8iCJcU1wXNR6q4V8w')
  })

  it('sends a text as one, and names what a file must be', async () => {
    const { gateway, vendors, upload } = await start()
    const [text, image] = [await upload(TEXT, 'a.txt'), await upload(PNG, 'b.png')]
    await gateway.call('/v1/messages', { json: { model: 'messages/m', ...REQUESTS.messages?.body(text, image) } })
    expect(vendors.messages?.requests[0]?.json()).toMatchObject({
      messages: [{ content: [{ source: { type: 'text', media_type: 'text/plain', data: String(TEXT) } }, {}] }],
    })
    for (const [document, picture, param] of [
      [image, image, 'messages[0].content[0].source.file_id'],
      [text, text, 'messages[0].content[1].source.file_id'],
    ] as const) {
      const answer = await gateway.call('/v1/messages', {
        json: { model: 'messages/m', ...REQUESTS.messages?.body(document, picture) },
      })
      expect(answer.status).toBe(400)
      expect(await answer.json()).toMatchObject({ error: { details: { error_code: 'invalid_value', param } } })
    }
  })

  it('reads files in the results of tools', async () => {
    const { gateway, vendors, upload } = await start()
    const content = [{ type: 'image', source: { type: 'file', file_id: await upload(PNG, 'b.png') } }]
    const messages = [
      { role: 'user', content: 'Go.' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content }] },
    ]
    await gateway.call('/v1/messages', { json: { model: 'messages/m', max_tokens: 10, messages } })
    expect(vendors.messages?.requests[0]?.body).toContain(PNG.toString('base64'))
  })
})

describe('POST /v1/responses', () => {
  it('stores the ids, and sends the data again when the response is continued', async () => {
    const { gateway, vendors, upload } = await start()
    vendors.chat?.otherwise(whole(completion('A boat.')))
    const document = await upload(PDF, 'a.pdf')
    const input = [{ role: 'user', content: [{ type: 'input_file', file_id: document }] }]
    const first = await gateway.call('/v1/responses', { json: { model: 'chat/m', input } })
    const { id } = (await first.json()) as { id: string }
    const items = await (await gateway.call(`/v1/responses/${id}/input_items`)).text()
    expect(items).toContain(document)
    expect(items).not.toContain(PDF.toString('base64'))
    const json = { model: 'chat/m', input: 'And now?', previous_response_id: id }
    expect((await gateway.call('/v1/responses', { json })).status).toBe(200)
    for (const { body } of vendors.chat?.requests ?? []) {
      expect(body).toContain(PDF.toString('base64'))
      expect(body).not.toContain(document)
    }
    await gateway.call(`/v1/files/${document}`, { method: 'DELETE' })
    const gone = await gateway.call('/v1/responses', { json })
    expect(await gone.json()).toMatchObject({ error: { code: 'file_not_found' } })
  })

  it('reads them in the background', async () => {
    const { gateway, vendors, upload } = await start()
    const document = await upload(PDF, 'a.pdf')
    const input = [{ role: 'user', content: [{ type: 'input_file', file_id: document }] }]
    const answer = await gateway.call('/v1/responses', { json: { model: 'chat/m', input, background: true } })
    expect(answer.status).toBe(200)
    gateway.clock.advance(2_000)
    const { body } = (await vendors.chat?.request()) ?? { body: '' }
    expect(body).toContain(PDF.toString('base64'))
  })
})

describe('POST /v1beta/models', () => {
  const FORMS = ['', 'files/', 'https://gateway.example/v1beta/files/']
  const call = ({ gateway }: Awaited<ReturnType<typeof start>>, kind: string, parts: Json[]) =>
    gateway.call(`/v1beta/models/${kind}/m:generateContent`, { json: { contents: [{ role: 'user', parts }] } })

  it.each(Object.keys(KINDS))('sends the data of files to a %s vendor, by id, name and address', async (kind) => {
    const started = await start()
    const { vendors, upload } = started
    for (const [at, form] of FORMS.entries()) {
      const [document, image] = [await upload(PDF, 'a.pdf'), await upload(PNG, 'b.png')]
      const other = { file_data: { file_uri: `${form}${image}`, mime_type: 'image/png' } }
      await call(started, kind, [{ fileData: { fileUri: `${form}${document}` } }, other])
      const sent = vendors[kind]?.requests[at]?.body ?? ''
      expect(sent).toContain(PDF.toString('base64'))
      expect(sent).toContain(PNG.toString('base64'))
      expect(sent).not.toContain('file-gh')
    }
  })

  it('refuses a file of another token', async () => {
    const started = await start()
    const theirs = await started.upload(PDF, 'a.pdf', { authorization: `Bearer ${await started.secret()}` })
    const answer = await call(started, 'contentgen', [{ fileData: { fileUri: theirs } }])
    expect(answer.status).toBe(404)
    expect(started.vendors.contentgen?.requests).toEqual([])
  })
})

describe('POST /v1beta/models/{model}:countTokens', () => {
  it.each([
    ['its contents', (contents: Json[]) => ({ contents })],
    ['the request that it counts', (contents: Json[]) => ({ generateContentRequest: { model: 'm', contents } })],
  ])('sends the data of files in %s to a vendor that counts', async (_, of) => {
    const { gateway, vendors, upload, secret } = await start()
    vendors.contentgen?.otherwise(whole({ totalTokens: 31 }))
    const count = (fileUri: string) =>
      gateway.call('/v1beta/models/contentgen/m:countTokens', {
        json: of([{ role: 'user', parts: [{ fileData: { fileUri } }] }]),
      })
    const answer = await count(`files/${await upload(PDF, 'a.pdf')}`)
    expect(await answer.json()).toEqual({ totalTokens: 31 })
    const sent = vendors.contentgen?.requests[0]?.body ?? ''
    expect([sent.includes(PDF.toString('base64')), sent.includes('file-gh')]).toEqual([true, false])
    expect((await count(await upload(PDF, 'a.pdf', { authorization: `Bearer ${await secret()}` }))).status).toBe(404)
    expect(vendors.contentgen?.requests.length).toBe(1)
  })
})

describe('an id that is written with escapes', () => {
  it.each(['/v1/chat/completions', '/v1/messages'])('is resolved by %s', async (path) => {
    const { gateway, vendors, upload } = await start()
    const [document, image] = [await upload(PDF, 'a.pdf'), await upload(PNG, 'b.png')]
    const { body } = Object.values(REQUESTS).find((request) => request.path === path) as (typeof REQUESTS)[string]
    const json = JSON.stringify({ model: 'messages/m', ...body(document, image) }).replaceAll(
      'file-gh',
      '\\u0066ile-gh',
    )
    await gateway.call(path, { json })
    expect(vendors.messages?.requests[0]?.body).toContain(PDF.toString('base64'))
  })
})

describe('POST /v1/images/edits', () => {
  it.each([
    ['an id', (id: string) => ({ image: id })],
    ['a list of ids', (id: string) => ({ image: [id] })],
    ['references', (id: string) => ({ images: [{ file_id: id }], mask: { file_id: id } })],
  ])('edits the files that are named by %s', async (_, fields) => {
    const { gateway, vendors, upload, secret } = await start({
      models: { 'chat/m': { targets: [{ provider: 'chat', model: 'm' }], families: ['image-generation'] } },
    })
    const call = (id: string) =>
      gateway.call('/v1/images/edits', { json: { model: 'chat/m', prompt: 'Greener.', ...fields(id) } })
    await call(await upload(PNG, 'b.png'))
    expect(vendors.chat?.requests[0]?.body).toContain('of a test')
    expect((await call(await upload(PDF, 'a.pdf'))).status).toBe(400)
    const theirs = await upload(PNG, 'b.png', { authorization: `Bearer ${await secret()}` })
    expect((await call(theirs)).status).toBe(404)
    expect(vendors.chat?.requests.length).toBe(1)
  })
})

describe('POST /v1/videos', () => {
  const started = () =>
    start({
      sandbox: true,
      models: { film: { targets: [{ provider: 'films', model: 'm' }], families: ['chatcompat-video'] } },
    })
  const order = (gateway: Awaited<ReturnType<typeof start>>['gateway'], json: Json) =>
    gateway.call('/v1/videos', { json: { model: 'film', prompt: 'A boat.', ...json } })

  it.each<[string, (id: string) => Json]>([
    ['a reference', (file_id) => ({ input_reference: { file_id, image_url: null } })],
    ['an image', (image) => ({ image })],
  ])('sends the data of a file that is named as %s', async (_, fields) => {
    const { gateway, vendors, upload, secret } = await started()
    expect((await order(gateway, fields(await upload(PNG, 'b.png')))).status).toBe(200)
    await gateway.instance.tasks.idle()
    const sent = vendors.films?.requests.find(({ method }) => method === 'POST')?.body ?? ''
    expect([sent.includes(PNG.toString('base64')), sent.includes('file-gh')]).toEqual([true, false])
    const theirs = fields(await upload(PNG, 'b.png', { authorization: `Bearer ${await secret()}` }))
    const refused = await order(gateway, theirs)
    expect([refused.status, ((await refused.json()) as Json).code]).toEqual([404, 'file_not_found'])
  })

  it('names what a file must be, and refuses one beside an address', async () => {
    const { gateway, upload } = await started()
    const [document, image] = [await upload(PDF, 'a.pdf'), await upload(PNG, 'b.png')]
    for (const [fields, message] of [
      [{ input_reference: { file_id: document } }, '"input_reference.file_id" must be the id of an image or a video;'],
      [{ input_reference: { file_id: image, image_url: 'https://x.test/a.png' } }, '"input_reference.file_id" must be'],
      [{ input_reference: { file_id: 'file-of-a-vendor' } }, '"input_reference.file_id" must be the id of one of your'],
      [{ video: image }, '"video" must be the id of a video; the type of this file is image/png.'],
      [{ images: [image, document] }, '"images[1]" must be the id of an image;'],
    ] as const) {
      const refused = await order(gateway, fields)
      expect([refused.status, ((await refused.json()) as Json).message]).toEqual([
        400,
        expect.stringContaining(message),
      ])
    }
  })
})

describe('the sandbox', () => {
  it('reads files by their ids in each API', async () => {
    const { gateway, upload } = await start({ sandbox: true })
    const [document, image] = [await upload(PDF, 'a.pdf'), await upload(PNG, 'b.png')]
    for (const { path, body } of Object.values(REQUESTS)) {
      const answer = await gateway.call(path, {
        json: {
          model: 'sandbox/vision',
          ...body(document, image),
          ...(path === '/v1/messages' && { max_tokens: 1_000 }),
        },
      })
      const text = await answer.text()
      expect([path, answer.status, text]).toEqual([path, 200, expect.stringContaining('of 42 bytes (application/pdf)')])
    }
  })
})
