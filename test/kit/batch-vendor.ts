/** A vendor with batches in the forms of OpenAI, Azure, Anthropic and Gemini. It executes each line when its batch is created. */
import { linesIn } from './batches.ts'

type Line = { id: string; body: Record<string, unknown> }
type VendorBatch = {
  id: string
  api: string
  input: string
  mark?: unknown
  lines: Line[]
  polls: number
  status: string
  at: number
}
type Behaviour = {
  /** How often a batch is in progress when it is asked for. */
  polls?: number
  /** What becomes of a creation: `lost`: it is created, and its response is not; `refused` and `full`: 400; `fails`: it is created, and has no room. */
  create?: (count: number) => 'ok' | 'lost' | 'refused' | 'full' | 'fails' | 'busy'
  /** What becomes of a line. */
  line?: (text: string) => 'ok' | 'error' | 'expired' | 'missing'
  now?: () => number
  /** Each request waits for it. */
  before?: (request: Request) => Promise<void> | undefined
}

/** As Azure has it. */
const NO_ROOM = {
  code: 'token_limit_exceeded',
  message: 'The number of enqueued tokens has surpassed the configured limit.',
  param: null,
  line: null,
}
const USAGE = { input: 10, output: 5 }

export function startBatchVendor({
  polls = 1,
  create = () => 'ok',
  line = () => 'ok',
  now = Date.now,
  before,
}: Behaviour = {}) {
  const files = new Map<string, string>()
  /** Of Azure, by its id: how often the status of a file was asked for. */
  const asked = new Map<string, number>()
  /** What Azure was sent to create a batch. */
  const azure: Record<string, unknown>[] = []
  const batches: VendorBatch[] = []
  /** How often the line with each text was executed. */
  const executed = new Map<string, number>()
  let created = 0
  let calls = 0
  let cancelled = 0

  const textOf = ({ body }: Line): string => {
    const { messages, contents } = body as {
      messages?: { content: unknown }[]
      contents?: { parts: { text: string }[] }[]
    }
    const content = messages?.[0]?.content
    if (Array.isArray(content)) return String(content[0]?.text)
    return content === undefined ? String(contents?.[0]?.parts[0]?.text) : String(content)
  }

  function add(api: string, input: string, lines: Line[], mark?: unknown): VendorBatch | Response {
    const outcome = create(++created)
    if (outcome === 'refused') return Response.json({ error: { message: 'no such model' } }, { status: 400 })
    if (outcome === 'full') return Response.json({ error: { code: 'token_limit_exceeded' } }, { status: 400 })
    if (outcome === 'busy') return Response.json({ error: { message: 'later' } }, { status: 429 })
    const batch = {
      id: `${api}-${batches.length + 1}`,
      api,
      input,
      mark,
      lines,
      polls: 0,
      status: outcome === 'fails' ? 'failed' : 'in_progress',
      at: now(),
    }
    batches.push(batch)
    if (outcome === 'fails') return batch
    for (const one of lines)
      if (line(textOf(one)) !== 'expired') executed.set(textOf(one), (executed.get(textOf(one)) ?? 0) + 1)
    return outcome === 'lost' ? new Response('gone', { status: 500 }) : batch
  }

  const poll = (batch: VendorBatch): VendorBatch => {
    if (batch.status === 'in_progress' && ++batch.polls > polls) batch.status = 'completed'
    return batch
  }

  const openAiView = ({ id, input, status, mark, at }: VendorBatch) => ({
    id,
    object: 'batch',
    input_file_id: input,
    status,
    metadata: mark,
    created_at: Math.floor(at / 1000),
    output_file_id: status === 'completed' ? `output-${id}` : null,
    error_file_id: status === 'completed' ? `error-${id}` : null,
    ...(status === 'failed' && { errors: { object: 'list', data: [NO_ROOM] } }),
  })
  const azureView = (batch: VendorBatch) => ({
    ...openAiView(batch),
    status: batch.status === 'in_progress' ? 'Validating' : batch.status,
    created_at: new Date(batch.at).toISOString(),
  })
  const messagesView = ({ id, status, lines, at }: VendorBatch) => ({
    id,
    type: 'message_batch',
    processing_status: status === 'in_progress' ? 'in_progress' : 'ended',
    created_at: new Date(at).toISOString(),
    request_counts: {
      processing: status === 'in_progress' ? lines.length : 0,
      succeeded: status === 'in_progress' ? 0 : lines.length,
    },
  })
  const geminiView = ({ id, status, mark }: VendorBatch) => ({
    name: `batches/${id}`,
    metadata: { state: status === 'in_progress' ? 'BATCH_STATE_RUNNING' : 'BATCH_STATE_SUCCEEDED', displayName: mark },
    ...(status !== 'in_progress' && { done: true, response: { responsesFile: `files/output-${id}` } }),
  })

  const chat = (one: Line) => ({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: one.body.model,
    choices: [{ index: 0, message: { role: 'assistant', content: `re: ${textOf(one)}` }, finish_reason: 'stop' }],
    usage: { prompt_tokens: USAGE.input, completion_tokens: USAGE.output, total_tokens: USAGE.input + USAGE.output },
  })
  const message = (one: Line) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: one.body.model,
    content: [{ type: 'text', text: `re: ${textOf(one)}` }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: USAGE.input, output_tokens: USAGE.output },
  })
  const content = (one: Line) => ({
    candidates: [{ content: { role: 'model', parts: [{ text: `re: ${textOf(one)}` }] }, finishReason: 'STOP' }],
    usageMetadata: {
      promptTokenCount: USAGE.input,
      candidatesTokenCount: USAGE.output,
      totalTokenCount: USAGE.input + USAGE.output,
    },
  })

  function openAiResults(batch: VendorBatch, isError: boolean): string {
    const out: unknown[] = []
    // In another order than they came.
    for (const one of [...batch.lines].reverse()) {
      const is = line(textOf(one))
      if (is === 'missing' || (is === 'ok') === isError) continue
      const body =
        is === 'ok' ? chat(one) : { error: { message: 'bad line', type: 'invalid_request_error', code: null } }
      const response = is === 'expired' ? null : { status_code: is === 'ok' ? 200 : 400, request_id: 'r', body }
      const error = is === 'expired' ? { code: 'batch_expired', message: 'too late' } : null
      out.push({ id: `r-${one.id}`, custom_id: one.id, response, error })
    }
    return out.map((value) => JSON.stringify(value)).join('\n')
  }

  function messageResults(batch: VendorBatch): string {
    const of = (one: Line) => {
      const is = line(textOf(one))
      if (is === 'ok') return { type: 'succeeded', message: message(one) }
      if (is === 'expired') return { type: 'expired' }
      return {
        type: 'errored',
        error: { type: 'error', error: { type: 'invalid_request_error', message: 'bad line' } },
      }
    }
    return batch.lines.map((one) => JSON.stringify({ custom_id: one.id, result: of(one) })).join('\n')
  }

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      await before?.(request)
      const { origin, pathname, searchParams } = new URL(request.url)
      const path = pathname.replace(/^(\/openai)?\/v1(beta)?/, '')
      const isAzure = pathname.startsWith('/openai/')
      const view: (batch: VendorBatch) => object = isAzure ? azureView : openAiView
      if (isAzure && request.headers.get('api-key') !== 'acme-key') return new Response('', { status: 401 })
      const route = `${request.method} ${path.replace(/\/(openai|anthropic|gemini)-\d+/, '/ID').replace(/\/(file|output|error)-[\w-]+/, '/FILE')}`
      const found = batches.find(({ id }) => path.split(/[/:]/).includes(id))
      if (route === 'POST /files') {
        const form = await request.formData()
        if (form.get('purpose') !== 'batch') return new Response('', { status: 400 })
        const id = `file-${files.size + 1}`
        if (isAzure && form.get('expires_after.seconds') !== '1209600') return new Response('', { status: 400 })
        files.set(id, await (form.get('file') as File).text())
        return Response.json({ id, object: 'file', status: 'pending' })
      }
      if (isAzure && route === 'GET /files/FILE') {
        const id = path.slice('/files/'.length)
        asked.set(id, (asked.get(id) ?? 0) + 1)
        return Response.json({ id, status: asked.get(id) === 1 ? 'pending' : 'processed' })
      }
      if (route === 'POST /batches') {
        const body = (await request.json()) as Record<string, string>
        const { input_file_id, metadata, endpoint } = body
        if (isAzure) azure.push(body)
        const lines = linesIn<{ custom_id: string; url: string; body: Line['body'] }>(
          files.get(input_file_id ?? '') ?? '',
        )
        if (lines.length === 0 || lines.some(({ url }) => url !== endpoint)) return new Response('', { status: 400 })
        const batch = add(
          'openai',
          input_file_id ?? '',
          lines.map(({ custom_id: id, body }) => ({ id, body })),
          metadata,
        )
        return batch instanceof Response ? batch : Response.json(view(batch))
      }
      if (route === 'GET /batches' && isAzure) {
        // The oldest ones first, fewer than were asked for.
        const from = batches.findIndex(({ id }) => id === searchParams.get('after')) + 1
        return Response.json({ data: batches.slice(from, from + 1).map(view), has_more: from + 1 < batches.length })
      }
      if (route === 'GET /batches') {
        if (searchParams.has('pageSize')) return Response.json({ operations: batches.map(geminiView) })
        return Response.json({ object: 'list', data: [...batches].reverse().map(openAiView), has_more: false })
      }
      if (route === 'GET /batches/ID' && found?.api === 'gemini') return Response.json(geminiView(poll(found)))
      if (route === 'GET /batches/ID' && found) return Response.json(view(poll(found)))
      if (route.startsWith('POST') && /cancel$/.test(route) && found) {
        cancelled++
        found.status = 'completed'
        return Response.json({})
      }
      if (route === 'GET /files/FILE/content') {
        const [, kind, id] = /(output|error)-(.*)\/content/.exec(path) ?? []
        const batch = batches.find((one) => one.id === id)
        return new Response(batch && openAiResults(batch, kind === 'error'))
      }
      if (route === 'POST /messages/batches') {
        const { requests } = (await request.json()) as { requests: { custom_id: string; params: Line['body'] }[] }
        const batch = add(
          'anthropic',
          '',
          requests.map(({ custom_id: id, params: body }) => ({ id, body })),
        )
        return batch instanceof Response ? batch : Response.json(messagesView(batch))
      }
      if (route === 'GET /messages/batches')
        return Response.json({
          data: [...batches].reverse().map(poll).map(messagesView),
          has_more: false,
          last_id: null,
        })
      if (route === 'GET /messages/batches/ID' && found) return Response.json(messagesView(poll(found)))
      if (route === 'GET /messages/batches/ID/results' && found) return new Response(messageResults(found))
      if (path.startsWith('/upload/')) {
        if (request.headers.get('x-goog-upload-command') === 'start')
          return new Response('', { headers: { 'x-goog-upload-url': `${origin}${pathname}?upload_id=7` } })
        const id = `files/file-${files.size + 1}`
        files.set(id, await request.text())
        return Response.json({ file: { name: id } })
      }
      if (path.endsWith(':batchGenerateContent')) {
        const { batch: asked } = (await request.json()) as {
          batch: { display_name: string; input_config: { file_name: string } }
        }
        const lines = linesIn<{ key: string; request: Line['body'] }>(files.get(asked.input_config.file_name) ?? '')
        const batch = add(
          'gemini',
          '',
          lines.map(({ key: id, request: body }) => ({ id, body })),
          asked.display_name,
        )
        return batch instanceof Response ? batch : Response.json(geminiView(batch))
      }
      if (path.startsWith('/download/')) {
        const batch = batches.find(({ id }) => path.includes(`output-${id}:`))
        return new Response(
          batch?.lines.map((one) => JSON.stringify({ key: one.id, response: content(one) })).join('\n'),
        )
      }
      calls++
      if (path.endsWith('/messages'))
        return Response.json(message({ id: '', body: (await request.json()) as Line['body'] }))
      return Response.json(chat({ id: '', body: (await request.json()) as Line['body'] }))
    },
  })
  return {
    batches,
    executed,
    azure,
    created: () => created,
    /** Calls that were no batch. */
    calls: () => calls,
    cancelled: () => cancelled,
    url: `http://127.0.0.1:${server.port}`,
    stop: () => server.stop(true),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}
