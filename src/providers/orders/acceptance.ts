/**
 * Decides whether a provider has accepted an order when its response has no operation id: one rule for all kinds, and the
 * known exceptions of a kind as data. Nothing else in the gateway decides this.
 */
import type { ProviderKind } from '../../config/schema/provider-kinds.ts'
import { isRecord, memberOf } from '../../kit/json.ts'
import type { ErrorCode, GatewayError } from '../../spec/error.ts'

/**
 * `not accepted`: the order may be sent to another target, or to the same one again. `in doubt`: the provider may
 * work on it and charge for it, so it is not sent again without an idempotency key that the provider honours.
 */
type Acceptance = 'not accepted' | 'in doubt'

/** A response of one kind whose meaning differs from the default rule. */
export type AcceptanceException = {
  /** HTTP statuses; absent: any. */
  status?: readonly number[]
  /** The provider's own codes in the body; absent: any. */
  codes?: readonly string[]
  /** Only with a JSON object as its body: an error page of a proxy says nothing about the order. */
  is_json?: true
  acceptance: Acceptance
  meaning: string
  /** The provider's documentation, a page of the manual, or `from memory` where neither was read for this row. */
  source: string
}

export type OrderKindRule = {
  /** Where the provider documents its errors. */
  source: string
  exceptions?: readonly AcceptanceException[]
  /** When an order in doubt is sent again with its key. Default: never. */
  sent_again?: string
  /** By which values an order in doubt is looked up, and where that is documented. */
  looked_up_by?: string
  not_looked_up?: string
}

/**
 * The request was rejected before any work: wrong input, credentials, account, model or size, or too many requests. Not
 * in this list: 408 (a timeout), 409 (an order with the same key or name may be in progress), 423 to 426, 460 and 499 (what
 * a proxy returns for an abandoned connection). Every 2xx without an operation id, 3xx and 5xx is in doubt too.
 */
export const NOT_ACCEPTED: readonly number[] = [
  400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422, 429, 431, 451,
]

const KLING_DOCS = 'https://app.klingai.com/global/dev/document-api/apiReference/commonInfo'
/** All of its codes below are on this page (read 2026-11-22, in a public copy). */
const MINIMAX_DOCS = 'https://platform.minimax.io/docs/api-reference/errorcode'
/** The row was written from memory; nobody has checked it against the provider's documentation yet. */
const FROM_MEMORY = 'from memory'
const IMAGES_ONLY = 'images come with the response, and no list of them is documented'
const NO_INPUT_IN_OPERATIONS = 'operations do not show what was ordered'
const NEW_API_CODE = 'https://github.com/QuantumNous/new-api/tree/main/relay'

export const ORDER_KINDS = {
  alibaba: {
    source: 'https://www.alibabacloud.com/help/en/model-studio/error-code',
    not_looked_up:
      'its list of tasks shows no prompt and no name of ours; a task shows its prompt only after its success',
  },
  'amazon-bedrock': {
    source: 'https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html',
    not_looked_up: IMAGES_ONLY,
  },
  ark: {
    source: 'https://docs.byteplus.com/en/docs/ModelArk/1299023',
    looked_up_by:
      '`safety_identifier`, which is our `task_id` (types of volcengine-ark-runtime 5.0.54, `content_generation.tasks.list`)',
  },
  'black-forest-labs': {
    source: 'https://docs.bfl.ai/api_integration/errors',
    not_looked_up: 'no list of tasks is documented',
  },
  chatcompat: { source: 'https://platform.openai.com/docs/guides/error-codes', not_looked_up: IMAGES_ONLY },
  'chatcompat-video': {
    source: 'https://platform.openai.com/docs/guides/error-codes',
    sent_again:
      'with `options.idempotent: true`, while the upstream remembers the key; with `options.list: complete`, if it is not listed',
    looked_up_by:
      'prompt, `seconds`, `size` and time; not with `options.idempotent: true`, `list: no`, `api: video-generations`, or media in the request (<https://developers.openai.com/api/docs/api-reference/videos/list>)',
    exceptions: [
      {
        codes: ['idempotency_key_reused'],
        acceptance: 'in doubt',
        meaning: 'an order with this key was accepted before',
        source: 'manual: errors',
      },
      {
        codes: ['do_request_failed', 'read_response_body_failed', 'unmarshal_response_body_failed', 'invalid_response'],
        acceptance: 'in doubt',
        meaning: 'New API lost the response of the provider behind it',
        source: NEW_API_CODE,
      },
    ],
  },
  fal: {
    source: 'https://fal.ai/docs/errors',
    looked_up_by: 'the whole input and time (<https://fal.ai/docs/platform-apis/v1/models/requests/by-endpoint>)',
  },
  fireworks: { source: 'https://docs.fireworks.ai/guides/inference-error-codes', not_looked_up: IMAGES_ONLY },
  google: { source: 'https://ai.google.dev/gemini-api/docs/troubleshooting', not_looked_up: NO_INPUT_IN_OPERATIONS },
  'google-vertex': {
    source: 'https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/api-errors',
    not_looked_up: NO_INPUT_IN_OPERATIONS,
  },
  kling: {
    source: KLING_DOCS,
    looked_up_by: '`external_task_id`, which is our `task_id`',
    exceptions: [
      {
        status: [200],
        codes: ['1000', '1001', '1002', '1003', '1004', '1100', '1101', '1102', '1103'],
        acceptance: 'not accepted',
        meaning: 'authentication failed, or the account may not order',
        source: KLING_DOCS,
      },
      {
        status: [200],
        codes: ['1200', '1201', '1202', '1203', '1300', '1301', '1302', '1303', '1304'],
        acceptance: 'not accepted',
        meaning: 'invalid request, rejected content, too many requests or tasks, address not allowed',
        source: FROM_MEMORY,
      },
    ],
  },
  luma: {
    source: 'https://docs.lumalabs.ai/docs/api',
    looked_up_by: 'prompt, keyframes, the other fields and time (types of lumaai 1.19.1, `generations.list`)',
  },
  meshy: {
    source: 'https://docs.meshy.ai/api-errors',
    looked_up_by: 'prompt and time, for the first order of a model from text (<https://docs.meshy.ai/api/text-to-3d>)',
  },
  minimax: {
    source: MINIMAX_DOCS,
    not_looked_up: 'its list of tasks shows no prompt and no name of ours',
    exceptions: [
      {
        status: [200],
        codes: ['1002', '1039', '1004', '2049', '1008', '1026', '2013'],
        acceptance: 'not accepted',
        meaning: 'rate limit, authentication, balance, sensitive input, invalid parameters',
        source: MINIMAX_DOCS,
      },
    ],
  },
  replicate: {
    source: 'https://replicate.com/docs/reference/http',
    looked_up_by:
      'model, the whole input and time, for an hour (<https://replicate.com/docs/reference/http#predictions.list>)',
  },
  runway: {
    source: 'https://docs.dev.runwayml.com/errors/errors',
    not_looked_up: 'its API has no list of tasks (types of @runwayml/sdk 4.20.1)',
    exceptions: [
      {
        status: [503],
        is_json: true,
        acceptance: 'not accepted',
        meaning: 'Runway sheds load; documented as safe to retry',
        source: 'https://docs.dev.runwayml.com/errors/errors',
      },
    ],
  },
  sandbox: {
    source: 'manual: sandbox',
    sent_again: 'always: the same key is the same order',
    not_looked_up: 'not needed',
  },
  togetherai: { source: 'https://docs.together.ai/docs/error-codes', not_looked_up: IMAGES_ONLY },
  tripo: {
    source: 'https://docs.tripo3d.ai/get-started/errors-and-error-handling.html',
    not_looked_up: 'its API reads tasks by their ids only',
  },
  xai: { source: 'https://docs.x.ai/developers/debugging', not_looked_up: 'no list of requests is documented' },
} as const satisfies { [kind in ProviderKind]?: OrderKindRule }

/** An HTTP response to an order without a readable operation id. */
type OrderResponse = { kind: ProviderKind; status: number; payload: unknown }

export function acceptanceOf({ kind, status, payload }: OrderResponse): Acceptance {
  const rules: { [kind in ProviderKind]?: OrderKindRule } = ORDER_KINDS
  const exception = rules[kind]?.exceptions?.find((one) => matches(one, status, payload))
  return exception?.acceptance ?? (NOT_ACCEPTED.includes(status) ? 'not accepted' : 'in doubt')
}

/** The same as a member of an error's detail, by which the rest of the gateway knows it. */
export const acceptanceDetail = (response: OrderResponse): { accepted?: 'no' } =>
  acceptanceOf(response) === 'not accepted' ? { accepted: 'no' } : {}

function matches({ status, codes, is_json }: AcceptanceException, received: number, payload: unknown): boolean {
  if (status && !status.includes(received)) return false
  if (is_json && !isRecord(payload)) return false
  return !codes || codesIn(payload).some((code) => codes.includes(code))
}

/** Reads the provider's own codes: at the top level, in `error`, in MiniMax's `base_resp`. */
function codesIn(payload: unknown): string[] {
  if (!isRecord(payload)) return []
  const { code, error, base_resp } = payload
  const found = [code, memberOf(error, 'code'), memberOf(base_resp, 'status_code')]
  return found.filter((one) => typeof one === 'string' || typeof one === 'number').map(String)
}

/**
 * Codes of a connection that failed before a byte of the request was sent: unknown host, no listener, an untrusted
 * certificate. Timeouts, lost routes and TLS errors (EPROTO) are not among them: an established connection ends with them too.
 */
const NOTHING_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_|ConnectionRefused|ERR_TLS_CERT|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|ERR_INVALID_URL)/

/**
 * The code that a client gets for a request that may be charged: never one with status 429, after which a gateway in front
 * of this one, and programs that ignore `x-should-retry`, send the request again.
 */
export const codeInDoubt = ({ code, status }: GatewayError): ErrorCode =>
  status === 429 ? 'bad_upstream_response' : code

/** Decides by the error code with which the connection of an order failed. */
export const acceptanceAfterFailure = (code: string): Acceptance =>
  NOTHING_SENT.test(code) ? 'not accepted' : 'in doubt'
