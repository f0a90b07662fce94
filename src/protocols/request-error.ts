/** Converts a validation problem to the error that names the field. */
import { foundText, type Problem, pathText } from '../kit/diagnose.ts'
import { GatewayError } from '../spec/error.ts'

export function refusalOf(problem: Problem | undefined): GatewayError {
  if (!problem) return new GatewayError('invalid_value', 'The body does not fit the schema of the request.')
  const param = pathText(problem.path)
  if (problem.kind === 'missing') {
    return new GatewayError('missing_required_parameter', `"${param}" is required.`, { param })
  }
  if (problem.path.length === 0) {
    return new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(problem.found)}.`)
  }
  const code = problem.kind === 'type' ? 'invalid_type' : 'invalid_value'
  return new GatewayError(code, `"${param}" must be ${mustBe(problem.expected)}, not ${foundText(problem.found)}.`, {
    param,
  })
}

/** `at least 1 item` reads better as `an array of at least 1 item`. */
const mustBe = (expected: string) => (/ items?$/.test(expected) ? `an array of ${expected}` : expected)
