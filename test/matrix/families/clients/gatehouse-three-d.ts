/** 3D models with our own package: no other package has such a call. */
import { errorCodeOf, generateThreeD, type ThreeDFile } from '../../../../packages/ai-sdk/src/gatehouse.ts'
import { aiFault } from '../../clients/ai.ts'
import type { FamilyRow, Gateway } from '../family.ts'
import type { ThreeDClient, ThreeDMade, ThreeDOrder } from '../types.ts'
import { gatehouseOf } from './gatehouse-videos.ts'

async function generatedFrom(file: ThreeDFile | undefined): Promise<ThreeDMade> {
  if (!file) throw new Error('There is no file.')
  return { format: file.format, bytes: (await file.download()).data }
}

function clientOf(gateway: Gateway): ThreeDClient {
  const paramsOf = ({ prompt, polygons }: ThreeDOrder) => ({
    prompt,
    ...(polygons === undefined ? {} : { targetPolycount: polygons }),
  })
  const make = (params: ThreeDOrder) =>
    generateThreeD({ model: gatehouseOf(gateway).threeD(params.model), ...paramsOf(params), maxRetries: 0 })
  return {
    make: async (params) => generatedFrom((await make(params)).file),
    failure: (params) =>
      make(params).then(
        () => undefined,
        (error: unknown) => errorCodeOf(error),
      ),
    async later(params) {
      const { operation } = await gatehouseOf(gateway).threeD(params.model).start(paramsOf(params))
      const elsewhere = gatehouseOf(gateway).threeD(params.model)
      const stored = JSON.parse(JSON.stringify(operation))
      for (;;) {
        const reply = await elsewhere.status({ operation: stored })
        if (reply.status === 'error') throw new Error(reply.failReason)
        if (reply.status === 'completed') return generatedFrom(reply.files[0])
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
