/** Gateways and providers that stop with the test that started them. */
import { afterEach } from 'bun:test'
import { startGateway, type TestGateway } from './gateway.ts'
import { type Answer, startVendor, type Vendor } from './vendor.ts'

type Settings = Parameters<typeof startGateway>[0]

export function perTest() {
  const started: { stop(): Promise<unknown> }[] = []
  afterEach(async () => {
    for (const one of started.splice(0)) await one.stop()
  })
  return {
    async open(settings: Settings = {}): Promise<TestGateway> {
      const gateway = await startGateway(settings)
      started.push({ stop: () => gateway[Symbol.asyncDispose]() })
      return gateway
    },
    vendorWith(...answers: Answer[]): Vendor {
      const vendor = startVendor(...answers)
      started.push(vendor)
      return vendor
    },
  }
}

/** Posts JSON to a gateway and parses the response. */
export async function postJson<Body = Record<string, unknown>>(gateway: TestGateway, path: string, json: unknown) {
  const answer = await gateway.call(path, { json })
  return { status: answer.status, body: (await answer.json()) as Body, headers: answer.headers }
}
