/**
 * Sections 2.5 to 2.7, 3.2, 4, 7 and 8 of the specification, row by row, in real responses of the sandbox's
 * text-to-video model (the specification's own) and of a provider on loopback; written from the specification, not from our code.
 */
import { afterAll, describe, expect, test } from 'bun:test'
import Ajv2020 from 'ajv/dist/2020'
import { readDocument } from './kit/document.ts'
import { startGateway } from './kit/gateway.ts'
import { startVideoVendor } from './kit/video-vendor.ts'

const STRING = { type: 'string' }
const INTEGER = { type: 'integer' }
const STATUSES = ['NOT_START', 'SUBMITTED', 'QUEUED', 'IN_PROGRESS', 'SUCCESS', 'FAILURE']

const closed = (properties: Record<string, object>, optional: string[] = []) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  additionalProperties: false,
})

/** Table 2.6. */
const SPEC_CREATED = closed({
  code: { const: 'success' },
  data: closed({ task_id: { ...STRING, minLength: 1 } }),
  message: STRING,
  fail_code: STRING,
})

/** Table 2.7; `result_url` is an additional field that chained gateways read. */
const SPEC_STATUS = closed({
  code: { const: 'success' },
  message: STRING,
  data: closed(
    {
      task_id: STRING,
      status: { enum: STATUSES },
      progress: { ...STRING, pattern: '^(100|[1-9]?[0-9])%$' },
      outputs: { type: 'array', items: { ...STRING, format: 'uri' }, minItems: 1 },
      result_url: STRING,
      submit_time: INTEGER,
      start_time: INTEGER,
      finish_time: INTEGER,
      fail_code: STRING,
      fail_reason: STRING,
    },
    ['outputs', 'result_url'],
  ),
})

type Created = { data: { task_id: string } }
type Data = {
  task_id: string
  status: string
  progress: string
  outputs?: string[]
  result_url?: string
  submit_time: number
  start_time: number
  finish_time: number
  fail_code: string
  fail_reason: string
}

const vendor = startVideoVendor({ polls: 3, end: (prompt) => (prompt === 'fail' ? 'failed' : 'completed') })
const gateway = await startGateway({
  providers: { v: { kind: 'chatcompat-video', base_url: vendor.url } },
  models: { 'v/film': { families: ['video-generation'] } },
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})
const { document, is } = await readDocument(gateway)
const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false })
/** `true`, or why a value does not match the table. */
const fits = (table: object, value: unknown) => ajv.validate(table, value) || ajv.errorsText()

/** Accepted, and then not processed: nothing is rendered for it. */
const D = { model: 'sandbox/text-to-video', prompt: 'A boat\n@sandbox hang=1' }
const order = (json: object) => gateway.call('/v1/video/generations', { json })
const statusOf = async (task_id: string) => (await gateway.call(`/v1/video/generations/${task_id}`)).json()

/** All responses that a client gets that polls after each step. */
async function life(prompt: string): Promise<Data[]> {
  const created = (await (await order({ model: 'v/film', prompt })).json()) as Created
  const seen: Data[] = []
  for (let turn = 0; turn < 200; turn++) {
    const answer = (await statusOf(created.data.task_id)) as { data: Data }
    expect(fits(SPEC_STATUS, answer)).toBe(true)
    expect(is('TaskAnswer', answer)).toBe(true)
    seen.push(answer.data)
    if (answer.data.status === 'SUCCESS' || answer.data.status === 'FAILURE') return seen
    await gateway.instance.tasks.idle()
    gateway.clock.advance(1_000)
  }
  throw new Error('It never ended.')
}

describe('2.5, the request', () => {
  test.each([
    ['aspect_ratio', ['16:9', '9:16', '1:1', '4:3', '3:4'], ['21:9', '16x9', '']],
    ['duration', [4, 8], [3, 5, 6, 7.999, 9, 0]],
    ['size', ['720p', '1080p'], ['480p', '2k', '720', '720P', '1280X720']],
    ['audio_enable', [true, false], []],
  ] as [string, unknown[], unknown[]][])('%s is one of %j', async (field, allowed, others) => {
    for (const value of allowed) expect((await order({ ...D, [field]: value })).status).toBe(200)
    for (const value of others) {
      const answer = await order({ ...D, [field]: value })
      expect([value, answer.status]).toEqual([value, 400])
      expect((await answer.json()).error).toMatchObject({ code: 'invalid_value', param: field })
    }
  })

  test.each([
    ['model', 7],
    ['prompt', 7],
    ['aspect_ratio', 169],
    ['duration', '4'],
    ['size', 720],
    ['audio_enable', 'true'],
  ])('%s has its type', async (field, value) => {
    const answer = await order({ ...D, [field]: value })
    expect([answer.status, (await answer.json()).error]).toMatchObject([400, { code: 'invalid_type', param: field }])
  })

  test('the component has every field of the table', () => {
    const { properties = {} } = document.components.schemas.VideoRequest as { properties?: object }
    expect(Object.keys(properties)).toContainValues([
      'model',
      'prompt',
      'aspect_ratio',
      'duration',
      'size',
      'audio_enable',
    ])
  })

  test('a model of another family and an unknown model are rejected', async () => {
    expect((await order({ ...D, model: 'sandbox/general' })).status).toBe(400)
    expect((await order({ ...D, model: 'sandbox/nothing' })).status).toBe(404)
  })
})

test('2.6, the response to a submission', async () => {
  const answer = await order(D)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toStartWith('application/json')
  const body = await answer.json()
  expect(fits(SPEC_CREATED, body)).toBe(true)
  expect(is('TaskCreated', body)).toBe(true)
  expect([body.message, body.fail_code]).toEqual(['', ''])
})

describe('2.7 and 3.2, the lifecycle of a task', () => {
  test('moves forward only, and its progress never decreases', async () => {
    const seen = await life('A boat')
    const ranks = seen.map(({ status }) => STATUSES.indexOf(status))
    expect(ranks).toEqual(ranks.toSorted((a, b) => a - b))
    const percents = seen.map(({ progress }) => Number.parseInt(progress, 10))
    expect(percents).toEqual(percents.toSorted((a, b) => a - b))
    expect(seen[0]).toMatchObject({ status: 'NOT_START', progress: '0%' })
    expect(new Set(ranks).size).toBeGreaterThan(2)
  })

  test('outputs are present on SUCCESS only, and can be fetched without a token', async () => {
    const seen = await life('A pond')
    const last = seen.at(-1)
    for (const data of seen.slice(0, -1)) expect('outputs' in data || 'result_url' in data).toBe(false)
    expect(last).toMatchObject({ status: 'SUCCESS', progress: '100%', fail_code: '', fail_reason: '' })
    expect(last?.result_url).toBe(last?.outputs?.[0])
    const url = new URL(last?.result_url ?? '')
    const file = await gateway.call(url.pathname + url.search, { headers: { authorization: '' } })
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'video/mp4'])
    expect((await file.arrayBuffer()).byteLength).toBe(Number(file.headers.get('content-length')))
  })

  test('times are present if they are known, and in order', async () => {
    const seen = await life('A river')
    for (const { status, submit_time, start_time, finish_time } of seen) {
      expect(submit_time).toBeGreaterThan(0)
      if (!['IN_PROGRESS', 'SUCCESS', 'FAILURE'].includes(status)) expect(start_time).toBe(0)
      if (!['SUCCESS', 'FAILURE'].includes(status)) expect(finish_time).toBe(0)
    }
    const { submit_time = 0, start_time = 0, finish_time = 0 } = seen.at(-1) ?? {}
    expect([submit_time, start_time, finish_time].toSorted()).toEqual([submit_time, start_time, finish_time])
    expect(start_time).toBeGreaterThan(0)
  })

  test('7: a failure is reported in a normal response, with code and reason', async () => {
    const last = (await life('fail')).at(-1)
    expect(last).toMatchObject({ status: 'FAILURE', progress: '100%' })
    expect(last?.fail_code).not.toBe('')
    expect(last?.fail_reason).not.toBe('')
    expect('outputs' in (last ?? {})).toBe(false)
  })
})

test('4 and 5: every path of videos requires a token', async () => {
  const anonymous = { headers: { authorization: '' } }
  for (const [method, path] of [
    ['POST', '/v1/video/generations'],
    ['GET', '/v1/video/generations'],
    ['GET', '/v1/video/generations/task_x'],
    ['POST', '/v1/video/generations/task_x/cancel'],
    ['POST', '/v1/videos'],
    ['GET', '/v1/videos'],
    ['GET', '/v1/videos/task_x'],
    ['DELETE', '/v1/videos/task_x'],
    ['GET', '/v1/videos/task_x/content'],
  ] as const) {
    const answer = await gateway.call(path, { method, ...anonymous })
    expect([path, answer.status, answer.headers.get('www-authenticate')]).toEqual([path, 401, 'Bearer'])
    expect(is('TaskError', await answer.json())).toBe(true)
  }
})
