/** Writes the manual's list of how each kind of provider answers an order. */
import { type AcceptanceException, ORDER_KINDS, type OrderKindRule } from '../../src/providers/orders/acceptance.ts'
import { code } from './table.ts'

const kinds = Object.entries(ORDER_KINDS) as [string, OrderKindRule][]

/** One line for each rule: only what differs from the general one, and for which kinds. */
export const orderLines = (): string[][] =>
  [...Map.groupBy(kinds, ([, rule]) => ruleOf(rule))].map(([rule, alike]) => [
    alike.map(([kind]) => code(kind)).join(', '),
    '',
    rule,
  ])

/** Why an order cannot be looked up, and where a provider documents its errors, is beside the rule in the code. */
function ruleOf({ exceptions = [], sent_again = 'never', looked_up_by }: OrderKindRule): string {
  const those = (acceptance: AcceptanceException['acceptance']) =>
    exceptions
      .filter((one) => one.acceptance === acceptance)
      .map(describe)
      .join('; ')
  const parts = [
    looked_up_by ? `looked up by ${withoutSource(looked_up_by)}` : 'not looked up',
    ...(sent_again === 'never' ? [] : [`sent again: ${withoutSource(sent_again)}`]),
    ...(those('not accepted') ? [`also not accepted: ${those('not accepted')}`] : []),
    ...(those('in doubt') ? [`also in doubt: ${those('in doubt')}`] : []),
  ]
  return parts.join('; ')
}

function describe({ status, codes, is_json, meaning }: AcceptanceException): string {
  const response = [
    ...(status ? [`${status.join(', ')}${is_json ? ' as JSON' : ''}`] : []),
    ...(codes ? [codes.length > 3 ? 'some codes' : `code ${codes.map(code).join(', ')}`] : []),
  ]
  return `${response.join(' with ')}: ${meaning}`
}

const withoutSource = (text: string): string => text.replace(/ \((?:<https:.*>|types of .*)\)$/, '')
