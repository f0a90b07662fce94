/** The calls that every family has: those that are refused, each in the client's own way. */
import { expect } from 'bun:test'
import type { FamilyCell, FamilyColumn, Faulty } from './family.ts'

/** What a call is refused with. */
export async function refusal(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    await call
  } catch (error) {
    return error
  }
  throw new Error('It was answered.')
}

type Expected = { status: number; says: RegExp; param?: string }

/** The client's own error, with its status, its words, and the field where the client tells one. */
export async function expectFault(client: Faulty, call: PromiseLike<unknown>, expected: Expected): Promise<void> {
  const { status, says, param } = expected
  const { param: told, ...fault } = client.fault(await refusal(call), status)
  expect(fault).toEqual({ status, message: expect.stringMatching(says), is_own_class: true })
  if (param !== undefined && told !== undefined) expect(told).toBe(param)
}

type Refusals<Client> = {
  group: string
  /** A plain request; with the directive that a vendor, and the sandbox, fail by. */
  ask(client: Client, model: string, directive?: string): PromiseLike<unknown>
  /** One with a field that is wrong by the gateway's own rules. */
  wrong: { ask(cell: FamilyCell<Client>): PromiseLike<unknown>; says: RegExp; param: string }
}

export const refusalColumns = <Client extends Faulty>({ group, ask, wrong }: Refusals<Client>) =>
  (
    [
      {
        name: '400 from the gateway with the field',
        check: (cell) => expectFault(cell.client, wrong.ask(cell), { status: 400, ...wrong }),
      },
      {
        name: '400 for another family',
        check: ({ client }) => expectFault(client, ask(client, 'sandbox/general'), { status: 400, says: /chatcompat/ }),
      },
      {
        name: '401',
        check: ({ stranger, target }) =>
          expectFault(stranger, ask(stranger, target.model), { status: 401, says: /token|key/i }),
      },
      {
        name: '404',
        check: ({ client, target }) =>
          expectFault(client, ask(client, `${target.model}-unknown`), { status: 404, says: /unknown/ }),
      },
    ] satisfies Omit<FamilyColumn<Client>, 'group'>[]
  ).map((column): FamilyColumn<Client> => ({ ...column, group }))

/** Of families that are answered at once: what the vendor refuses is heard at once. */
export const vendorColumns = <Client extends Faulty>({
  group,
  ask,
}: Pick<Refusals<Client>, 'group' | 'ask'>): FamilyColumn<Client>[] => [
  {
    name: '400 from the provider',
    group,
    check: ({ client, target }) =>
      expectFault(client, ask(client, target.model, '@sandbox status=400'), { status: 400, says: /refused/ }),
  },
  {
    name: '429',
    group,
    check: ({ client, target }) =>
      expectFault(client, ask(client, target.model, '@sandbox status=429'), { status: 429, says: /./ }),
  },
]
