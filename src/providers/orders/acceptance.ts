/**
 * Whether a provider has accepted an order that it did not answer with an operation id: one rule for all kinds, and the
 * documented exceptions of a kind as data. Nothing else in the gateway decides this.
 */
import type { ProviderKind } from '../../config/provider-kinds.ts'
import { isRecord } from '../../kit/json.ts'
import type { ErrorCode, GatewayError } from '../../spec/error.ts'

/**
 * `not accepted`: another target may have the order, or the same one may have it again. `in doubt`: the provider may
 * work on it and charge for it, so nobody gets it again without an idempotency key that the provider honours.
 */
type Acceptance = 'not accepted' | 'in doubt'

/** A documented answer of one kind whose meaning differs from the default rule. */
export type AcceptanceException = {
  /** HTTP statuses; absent: any. */
  status?: readonly number[]
  /** The provider's own codes in the body; absent: any. */
  codes?: readonly string[]
  /** Only with a JSON object as its body: a page of a proxy in between says nothing of the order. */
  is_json?: true
  acceptance: Acceptance
  /** What the answer means, as the provider documents it. */
  meaning: string
  source: string
}

export type OrderKindRule = {
  /** Where the provider documents its errors. */
  source: string
  exceptions?: readonly AcceptanceException[]
  /** When an order in doubt is sent again with its key. Default: never. */
  sent_again?: string
  /** By what an order in doubt is looked up. Default: it cannot be. */
  looked_up_by?: string
}

/**
 * The request was refused before any work: wrong input, credentials, account, model or size, or too many requests. Not
 * among them: 408 (a time-out), 409 (an order with the same key or name may be under way), 423 to 426, 460 and 499 (what
 * a proxy says of a connection that was given up). Every 2xx without an operation id, 3xx and 5xx is in doubt too.
 */
export const NOT_ACCEPTED: readonly number[] = [
  400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422, 429, 431, 451,
]

const KLING_DOCS = 'https://app.klingai.com/global/dev/document-api/apiReference/commonInfo'
const MINIMAX_DOCS = 'https://platform.minimax.io/docs/api-reference/errorcode'
const NEW_API_CODE = 'https://github.com/QuantumNous/new-api/tree/main/relay'

export const ORDER_KINDS = {
  alibaba: { source: 'https://www.alibabacloud.com/help/en/model-studio/error-code' },
  'amazon-bedrock': { source: 'https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html' },
  ark: { source: 'https://docs.byteplus.com/en/docs/ModelArk/1299023' },
  'black-forest-labs': { source: 'https://docs.bfl.ai/api_integration/errors' },
  chatcompat: { source: 'https://platform.openai.com/docs/guides/error-codes' },
  'chatcompat-video': {
    source: 'https://platform.openai.com/docs/guides/error-codes',
    sent_again: 'with `options.idempotent: true`, while the upstream remembers the key',
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
        meaning: 'New API lost the answer of the provider behind it',
        source: NEW_API_CODE,
      },
    ],
  },
  fal: { source: 'https://fal.ai/docs/errors' },
  fireworks: { source: 'https://docs.fireworks.ai/guides/inference-error-codes' },
  google: { source: 'https://ai.google.dev/gemini-api/docs/troubleshooting' },
  'google-vertex': {
    source: 'https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/api-errors',
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
        meaning: 'invalid request, refused content, too many requests or tasks, address not allowed',
        source: KLING_DOCS,
      },
    ],
  },
  luma: { source: 'https://docs.lumalabs.ai/docs/api' },
  meshy: { source: 'https://docs.meshy.ai/api-errors' },
  minimax: {
    source: MINIMAX_DOCS,
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
  replicate: { source: 'https://replicate.com/docs/reference/http' },
  runway: {
    source: 'https://docs.dev.runwayml.com/errors/errors',
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
  sandbox: { source: 'manual: sandbox', sent_again: 'always: the same key is the same order' },
  togetherai: { source: 'https://docs.together.ai/docs/error-codes' },
  tripo: { source: 'https://docs.tripo3d.ai/get-started/errors-and-error-handling.html' },
  xai: { source: 'https://docs.x.ai/developers/debugging' },
} as const satisfies { [kind in ProviderKind]?: OrderKindRule }

/** An HTTP answer to an order that holds no operation id, or none that can be read. */
type OrderAnswer = { kind: ProviderKind; status: number; payload: unknown }

export function acceptanceOf({ kind, status, payload }: OrderAnswer): Acceptance {
  const exception = exceptionsOf(kind).find((one) => fits(one, status, payload))
  return exception?.acceptance ?? (NOT_ACCEPTED.includes(status) ? 'not accepted' : 'in doubt')
}

/** The same as the member of an error's detail by which the rest of the gateway knows it. */
export const acceptanceDetail = (answer: OrderAnswer): { accepted?: 'no' } =>
  acceptanceOf(answer) === 'not accepted' ? { accepted: 'no' } : {}

const ruleOf = (kind: ProviderKind): OrderKindRule | undefined =>
  Object.hasOwn(ORDER_KINDS, kind) ? ORDER_KINDS[kind as keyof typeof ORDER_KINDS] : undefined

const exceptionsOf = (kind: ProviderKind): readonly AcceptanceException[] => ruleOf(kind)?.exceptions ?? []

function fits({ status, codes, is_json }: AcceptanceException, answered: number, payload: unknown): boolean {
  if (status && !status.includes(answered)) return false
  if (is_json && !isRecord(payload)) return false
  return !codes || codesIn(payload).some((code) => codes.includes(code))
}

/** Where providers put a code of their own: at the top, in `error`, in MiniMax's `base_resp`. */
function codesIn(payload: unknown): string[] {
  if (!isRecord(payload)) return []
  const { code, error, base_resp } = payload
  const found = [
    code,
    isRecord(error) ? error.code : undefined,
    isRecord(base_resp) ? base_resp.status_code : undefined,
  ]
  return found.filter((one) => typeof one === 'string' || typeof one === 'number').map(String)
}

/**
 * Codes of a connection that failed before a byte of the request left: no name, no listener, a certificate that is not
 * trusted. Time-outs, lost routes and TLS errors (EPROTO) are not among them: a connection that stands ends with them too.
 */
const NOTHING_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_|ConnectionRefused|ERR_TLS_CERT|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|ERR_INVALID_URL)/

/**
 * The code with which a client hears of a request that may be charged: not one of status 429, after which programs without
 * a look at `x-should-retry`, and a gateway in front of this one, send it again.
 */
export const codeInDoubt = ({ code, status }: GatewayError): ErrorCode =>
  status === 429 ? 'bad_upstream_response' : code

/** By the code of the error with which the connection of an order ended. */
export const acceptanceAfterFailure = (code: string): Acceptance =>
  NOTHING_SENT.test(code) ? 'not accepted' : 'in doubt'
