/** Encodes a task for the contentgen video API: a long-running operation, as https://google.aip.dev/151 describes it. */
import Type from 'typebox'
import type { Outputs } from '../../outputs/outputs.ts'
import { GatewayError } from '../../spec/error.ts'
import { flag, titled } from '../../spec/fields.ts'
import type { FailCode, Task } from '../../spec/task.ts'
import { isEnded } from './lifecycle.ts'
import { taskData } from './task-response.ts'

export const VideoOperation = titled('VideoOperation', {
  name: Type.String({ description: '`models/{model}/operations/{task_id}`.' }),
  done: flag('Present, and true, once it has ended.'),
  metadata: Type.Object({ status: Type.String(), progress: Type.String() }),
  response: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), { description: '`generateVideoResponse`, or of Vertex AI `videos`.' }),
  ),
  error: Type.Optional(Type.Object({ code: Type.Integer(), message: Type.String() })),
})
type VideoOperation = Type.Static<typeof VideoOperation>

type Links = { outputs: Pick<Outputs, 'link'>; base_url: string }

/** With the names of files, which are downloaded with the token. */
export function encodeOperation(task: Task, { base_url }: Links): VideoOperation {
  const generatedSamples = task.outputs.map((_, index) => ({
    video: { uri: `${base_url}/v1beta/files/${fileName(task, index)}:download?alt=media` },
  }))
  return operationOf(task, { generateVideoResponse: { generatedSamples, ...filtered(task) } })
}

/** With signed links, since its clients download no files. */
export function encodePublishedOperation(task: Task, links: Links): VideoOperation {
  const { outputs = [] } = taskData(task, links)
  const videos = outputs.map((gcsUri, index) => ({
    gcsUri,
    mimeType: task.outputs[index]?.content_type ?? 'video/mp4',
  }))
  return operationOf(task, { videos, ...filtered(task) })
}

function operationOf(task: Task, response: Record<string, unknown>): VideoOperation {
  const { task_id, model, status, progress, fail_code, fail_reason } = task
  const head = { name: `models/${model}/operations/${task_id}`, metadata: { status, progress: `${progress}%` } }
  if (!isEnded(task)) return head
  const hasFailed = status === 'FAILURE' && fail_code !== FILTERED
  const result = hasFailed ? { error: { code: CODES[fail_code] ?? INTERNAL, message: fail_reason } } : { response }
  return { ...head, done: true, ...result }
}

/** A video that was withheld is no error in this API. */
const FILTERED: FailCode = 'content_policy_violation'
const filtered = ({ status, fail_code, fail_reason }: Task) =>
  status === 'FAILURE' && fail_code === FILTERED
    ? { raiMediaFilteredCount: 1, raiMediaFilteredReasons: [fail_reason] }
    : {}

/** Codes of google.rpc. */
const INTERNAL = 13
const CODES: { [code in FailCode | '']?: number } = {
  canceled: 1,
  invalid_input: 3,
  input_media_invalid: 3,
  insufficient_quota: 8,
  model_unavailable: 14,
}

/** Clients take from an address only lower-case letters and digits, so the name is the id in hexadecimal, and the index. */
const fileName = ({ task_id }: Task, index: number): string => `${Buffer.from(task_id).toString('hex')}x${index}`
/** Where the address has no `https`, clients send all of it as the name. */
const FILE_NAME = /(?:^|\/files\/)((?:[\da-f]{2})+)x(\d+):download/

/** The task and the index of its file. Throws output_not_found. */
export function idInFile(name: string): { task_id: string; index: string } {
  const [, hex = '', index = ''] = FILE_NAME.exec(name) ?? []
  if (hex === '')
    throw new GatewayError('output_not_found', 'There is no such file: its address is "uri" of an operation.')
  return { task_id: Buffer.from(hex, 'hex').toString(), index }
}
