/** API tokens: the caller, and what it may use (specification, section 5). */
import Type from 'typebox'
import { EndpointFamily } from './endpoint-family.ts'

/** A token as it is stored and shown: everything except the secret. Times are unix seconds. */
export const Token = Type.Object(
  {
    token_id: Type.String({ description: '`tok_` and 16 alphanumerics.' }),
    name: Type.String(),
    prefix: Type.String({ description: 'The first characters of the secret, to recognise it by.' }),
    models: Type.Array(Type.String(), { description: 'Glob patterns of the model ids it may use; `*` is all.' }),
    families: Type.Union([Type.Array(EndpointFamily), Type.Null()], { description: 'null is every family.' }),
    expires_at: Type.Union([Type.Integer(), Type.Null()]),
    disabled: Type.Boolean(),
    created_at: Type.Integer(),
    last_used_at: Type.Union([Type.Integer(), Type.Null()]),
  },
  { title: 'Token' },
)
export type Token = Type.Static<typeof Token>

/** The caller of a request, as far as other modules need to know it. */
export type Caller = {
  token_id: string
  /** Limited to some models or some families. */
  is_limited?: boolean
  mayUseModel(id: string): boolean
  mayUseFamily(family: EndpointFamily): boolean
}

/** The usage of one caller with one model in one hour. */
export type UsageRow = {
  token_id: string
  model: string
  /** The start of the hour in unix seconds. */
  hour: number
  requests: number
  errors: number
  input_tokens: number
  output_tokens: number
  /** The number of requests whose tokens are an estimate. */
  estimated: number
}
