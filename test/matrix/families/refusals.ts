/** The calls that every family has: refused ones, each with the client's own error. */
import { expect } from 'bun:test'
import type { FamilyCell, FamilyColumn, Faulty } from './family.ts'

/** The error of a refused call. */
export async function refusal(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    await call
  } catch (error) {
    return error
  }
  throw new Error('The call succeeded.')
}

type Expected = { status: number; pattern: RegExp; param?: string }

/** The client's own error, with its status, its message, and the field if the client reports one. */
export async function expectFault(client: Faulty, call: PromiseLike<unknown>, expected: Expected): Promise<void> {
  const { status, pattern, param } = expected
  const { param: reply, ...fault } = client.fault(await refusal(call), status)
  expect(fault).toEqual({ status, message: expect.stringMatching(pattern), is_own_class: true })
  if (param !== undefined && reply !== undefined) expect(reply).toBe(param)
}

type Refusals<Client> = {
  group: string
  /** A plain request, with an optional directive that makes a provider or the sandbox fail. */
  send(client: Client, model: string, directive?: string): PromiseLike<unknown>
  /** A request with a field that the gateway itself refuses. */
  wrong: { send(cell: FamilyCell<Client>): PromiseLike<unknown>; pattern: RegExp; param: string }
}

export const refusalColumns = <Client extends Faulty>({ group, send, wrong }: Refusals<Client>) =>
  (
    [
      {
        name: '400 from the gateway with the field',
        check: (cell) => expectFault(cell.client, wrong.send(cell), { status: 400, ...wrong }),
      },
      {
        name: '400 for another family',
        check: ({ client }) =>
          expectFault(client, send(client, 'sandbox/general'), { status: 400, pattern: /chatcompat/ }),
      },
      {
        name: '401',
        check: ({ unauthorized, target }) =>
          expectFault(unauthorized, send(unauthorized, target.model), { status: 401, pattern: /token|key/i }),
      },
      {
        name: '404',
        check: ({ client, target }) =>
          expectFault(client, send(client, `${target.model}-unknown`), { status: 404, pattern: /unknown/ }),
      },
    ] satisfies Omit<FamilyColumn<Client>, 'group'>[]
  ).map((column): FamilyColumn<Client> => ({ ...column, group }))

/** For synchronous families: a provider's refusal is returned at once. */
export const vendorColumns = <Client extends Faulty>({
  group,
  send,
}: Pick<Refusals<Client>, 'group' | 'send'>): FamilyColumn<Client>[] => [
  {
    name: '400 from the provider',
    group,
    check: ({ client, target }) =>
      expectFault(client, send(client, target.model, '@sandbox status=400'), { status: 400, pattern: /rejected/ }),
  },
  {
    name: '429',
    group,
    check: ({ client, target }) =>
      expectFault(client, send(client, target.model, '@sandbox status=429'), { status: 429, pattern: /./ }),
  },
]
