/** One model. */
import { useApi } from '../../api/hooks.ts'
import { useRouteParams } from '../../ui/address.ts'
import { Code } from '../../ui/display.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Loaded } from '../../ui/states.tsx'

export function ModelPage() {
  const { _splat: id = '' } = useRouteParams()
  const model = useApi('GET /admin/v1/models/{model}', { params: { model: id } })
  return (
    <>
      <PageHead title={id} crumbs={[{ to: '/models', label: 'Models' }]} />
      <Loaded query={model}>{(data) => <Code label="model" text={JSON.stringify(data, null, 2)} />}</Loaded>
    </>
  )
}
