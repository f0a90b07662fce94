/** What each kind of provider means by its responses to an order, as rows of the manual's table. */
import { type AcceptanceException, ORDER_KINDS, type OrderKindRule } from '../../src/providers/orders/acceptance.ts'
import { code } from './table.ts'

const kinds = Object.entries(ORDER_KINDS) as [string, OrderKindRule][]

export const orderRows = (): string[][] =>
  kinds.map(([kind, { source, exceptions = [], sent_again = 'never', looked_up_by, not_looked_up }]) => {
    const cell = (acceptance: AcceptanceException['acceptance']) =>
      exceptions
        .filter((one) => one.acceptance === acceptance)
        .map(describe)
        .join('; ')
    return [
      code(kind),
      cell('not accepted'),
      cell('in doubt'),
      sent_again,
      looked_up_by ?? `no: ${not_looked_up}`,
      linkTo(source),
    ]
  })

function describe({ status, codes, is_json, meaning, source }: AcceptanceException): string {
  const response = [
    ...(status ? [`${status.join(', ')}${is_json ? ' as JSON' : ''}`] : []),
    ...(codes ? [`code ${codes.map(code).join(', ')}`] : []),
  ]
  return `${response.join(' with ')}: ${meaning} (${linkTo(source)})`
}

const linkTo = (source: string) =>
  source.startsWith('manual: ')
    ? `[${source.slice(8)}](${source.slice(8)}.md)`
    : source.startsWith('https:')
      ? `<${source}>`
      : source
