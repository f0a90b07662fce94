import { expect, test } from 'bun:test'
import { contentgenErrorBody } from './contentgen-error.ts'
import { ERRORS, type ErrorCode, GatewayError } from './error.ts'

test('every error code has its HTTP status as its code, and a status name', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const { error } = contentgenErrorBody(new GatewayError(code, 'Text.'))
    expect([error.code, error.message]).toEqual([ERRORS[code].status, 'Text.'])
    expect(error.status).toMatch(/^[A-Z_]+$/)
    expect(error.details[0]?.reason).toBe(code.toUpperCase())
  }
})

test('the field, the time to retry and the replacement are in details of known types', () => {
  const detail = { param: 'contents[0]', retry_after: 7, replaced_by: 'a/b' }
  const { details } = contentgenErrorBody(new GatewayError('invalid_value', 'Text.', detail)).error
  expect(details[0]?.metadata).toEqual({ replaced_by: 'a/b' })
  expect(details[1]?.fieldViolations).toEqual([{ field: 'contents[0]', description: 'Text.' }])
  expect(details[2]?.retryDelay).toBe('7s')
})
