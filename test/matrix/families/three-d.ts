/** The matrix of 3D models: its clients and its calls. */
import { expect } from 'bun:test'
import { gatehouseThreeD } from './clients/gatehouse-three-d.ts'
import type { Family, FamilyCell, FamilyColumn } from './family.ts'
import { THREE_D_KINDS } from './order-kinds.ts'
import { FAILING } from './order-wire.ts'
import { refusalColumns } from './refusals.ts'
import type { ThreeDClient, ThreeDMade } from './types.ts'

const PROMPT = 'A teapot'

const teapot = ({ target }: FamilyCell<ThreeDClient>) => ({
  model: target.model,
  prompt: `${PROMPT}\n@sandbox quick=1`,
})

/** A binary glTF file starts with its name. */
function expectModel(generated: ThreeDMade | undefined): void {
  expect(generated?.format).toBe('glb')
  expect(Buffer.from(generated?.bytes.subarray(0, 4) ?? []).toString()).toBe('glTF')
}

const COLUMNS: Omit<FamilyColumn<ThreeDClient>, 'group'>[] = [
  { name: 'create, wait, download', check: async (cell) => expectModel(await cell.client.make(teapot(cell))) },
  {
    name: 'create in one client, fetch in another',
    has: ({ later }) => later !== undefined,
    check: async (cell) => expectModel(await cell.client.later?.(teapot(cell))),
  },
  {
    name: 'failed task',
    check: async ({ client, target }) =>
      expect(await client.failure({ model: target.model, prompt: `${PROMPT}\n${FAILING}` })).toBe(
        'content_policy_violation',
      ),
  },
  {
    name: 'task rejected by the provider',
    check: async ({ client, target }) =>
      expect(await client.failure({ model: target.model, prompt: `${PROMPT}\n@sandbox status=400` })).toBe(
        'invalid_input',
      ),
  },
]

const GROUP = '3D models'

export const THREE_D: Family<ThreeDClient> = {
  family: '3d-generation',
  sandbox: 'sandbox/text-to-3d',
  kinds: THREE_D_KINDS,
  rows: [gatehouseThreeD],
  columns: [
    ...COLUMNS.map((column) => ({ ...column, group: GROUP })),
    ...refusalColumns<ThreeDClient>({
      group: GROUP,
      send: (client, model) => client.make({ model, prompt: PROMPT }),
      wrong: {
        send: ({ client, target }) => client.make({ model: target.model, prompt: PROMPT, polygons: 0 }),
        pattern: /target_polycount/,
        param: 'target_polycount',
      },
    }),
  ],
}
