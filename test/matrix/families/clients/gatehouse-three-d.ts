/** How 3D models are ordered with our own package: no other one has such a call. */
import { errorCodeOf, generateThreeD, type ThreeDFile } from '../../../../packages/ai-sdk/src/gatehouse.ts'
import { aiFault } from '../../clients/ai.ts'
import type { FamilyRow, Gateway } from '../family.ts'
import type { ThreeDClient, ThreeDMade, ThreeDOrder } from '../words.ts'
import { gatehouseOf } from './gatehouse-videos.ts'

async function madeOf(file: ThreeDFile | undefined): Promise<ThreeDMade> {
  if (!file) throw new Error('There is no file.')
  return { format: file.format, bytes: (await file.download()).data }
}

function clientOf(gateway: Gateway): ThreeDClient {
  const asked = ({ prompt, polygons }: ThreeDOrder) => ({
    prompt,
    ...(polygons === undefined ? {} : { targetPolycount: polygons }),
  })
  const make = (ask: ThreeDOrder) =>
    generateThreeD({ model: gatehouseOf(gateway).threeD(ask.model), ...asked(ask), maxRetries: 0 })
  return {
    make: async (ask) => madeOf((await make(ask)).file),
    failure: (ask) =>
      make(ask).then(
        () => undefined,
        (error: unknown) => errorCodeOf(error),
      ),
    async later(ask) {
      const { operation } = await gatehouseOf(gateway).threeD(ask.model).start(asked(ask))
      const elsewhere = gatehouseOf(gateway).threeD(ask.model)
      const kept = JSON.parse(JSON.stringify(operation))
      for (;;) {
        const told = await elsewhere.status({ operation: kept })
        if (told.status === 'error') throw new Error(told.failReason)
        if (told.status === 'completed') return madeOf(told.files[0])
      }
    },
    fault: aiFault,
  }
}

export const gatehouseThreeD: FamilyRow<ThreeDClient> = {
  name: '`@gatehouse/ai-sdk`, 3D models',
  packages: ['@gatehouse/ai-sdk'],
  base: '/v1',
  dialect: '3d-generation',
  connect: clientOf,
}
