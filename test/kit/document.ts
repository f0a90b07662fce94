/** The OpenAPI document of a gateway under test, and an independent JSON Schema validator for its responses. */
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020'
import type { TestGateway } from './gateway.ts'

export type Json = { [name: string]: unknown }
export type Media = { schema: Json; example?: unknown; examples?: Record<string, { value: unknown }> }
export type Reply = { description: string; headers: Json; content?: Record<string, Media> }
export type Operation = {
  operationId: string
  tags: string[]
  security?: unknown[]
  parameters?: { name: string; in: string; required: boolean }[]
  requestBody?: { required?: boolean; content: Record<string, Media> }
  responses: Record<string, Reply>
}
export type Document = {
  openapi: string
  info: { version: string; description: string }
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Json>; securitySchemes: Record<string, Json> }
}

export async function readDocument(gateway: TestGateway) {
  const answer = await gateway.call('/openapi.json', { headers: { authorization: '' } })
  const document = (await answer.json()) as Document
  const ajv = new Ajv2020({ strict: false, allErrors: true }).addSchema(document, 'api')

  const compiled = new Map<string, ValidateFunction>()

  /** `true`, or the validation errors as text. */
  function fits(schema: Json, value: unknown): true | string {
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"api#/components/')
    const check = compiled.get(text) ?? ajv.compile(JSON.parse(text))
    compiled.set(text, check)
    return check(value) || ajv.errorsText(check.errors)
  }

  return {
    document,
    fits,
    /** Whether a value fits the component of this name. */
    is: (name: string, value: unknown) => fits({ $ref: `#/components/schemas/${name}` }, value),
    operations: Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        name: `${method.toUpperCase()} ${path}`,
        path,
        method: method.toUpperCase(),
        operation,
      })),
    ),
  }
}
