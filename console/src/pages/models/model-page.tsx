/** One model: what it can, what it costs, who serves it, how it is called, and how long it lives. */
import { useApi, useMe } from '../../api/hooks.ts'
import type { AdminModelWithSettings, ModelPrice } from '../../api/types.ts'
import { familyName } from '../../lib/families.ts'
import { money } from '../../lib/format.ts'
import { choice } from '../../lib/search.ts'
import { seesAll } from '../../shell/page.ts'
import { useAddress, useRouteParams } from '../../ui/address.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Badge, Card, CopyButton, Facts, Nothing } from '../../ui/display.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { Count, Time } from '../../ui/values.tsx'
import { ModelLifecycle } from './model-lifecycle.tsx'
import { ModelStatus, TargetHealth } from './model-parts.tsx'
import { ModelSamples } from './model-samples.tsx'
import { ModelTargets } from './model-targets.tsx'
import { ModelUsage } from './model-usage.tsx'

const TABS = ['overview', 'samples', 'targets'] as const

export function ModelPage() {
  const { _splat: id = '' } = useRouteParams()
  const isOfAll = seesAll(useMe())
  const [{ tab }, change] = useAddress({ tab: choice(TABS, 'overview') })
  const model = useApi('GET /admin/v1/models/{model}', { params: { model: id } }, { refetch_ms: 15_000 })
  return (
    <>
      <PageHead
        title={id}
        crumbs={[{ to: '/models', label: 'Models' }]}
        aside={
          <>
            <CopyButton text={id} label="Copy the model's name" />
            {model.data && <ModelStatus model={model.data} />}
          </>
        }
        acts={
          <ButtonLink to="/requests" search={{ model: id }}>
            Its requests
          </ButtonLink>
        }
      />
      <Loaded query={model} lines={10}>
        {(data) => (
          <Tabs
            value={tab}
            onChange={(value) => change({ tab: value as typeof tab })}
            tabs={[
              { value: 'overview', label: 'Overview', content: <Overview model={data} /> },
              { value: 'samples', label: 'Samples', content: <ModelSamples model={data} /> },
              ...(isOfAll
                ? [{ value: 'targets', label: 'Targets', content: <ModelTargets targets={data.targets} /> }]
                : []),
            ]}
          />
        )}
      </Loaded>
    </>
  )
}

function Overview({ model }: { model: AdminModelWithSettings }) {
  const isOfAll = seesAll(useMe())
  const capabilities = Object.entries(model.capabilities)
  const fallbacks = Object.entries(model.fallbacks)
  return (
    <div className="stack">
      <div className="grid-wide">
        <Card title="What it can do">
          <Facts
            rows={[
              [
                'APIs',
                <span key="apis" className="row">
                  {model.families.map((family) => (
                    <Badge key={family}>{familyName(family)}</Badge>
                  ))}
                </span>,
              ],
              ['Context', <Tokens key="context" value={model.context_tokens} />],
              ['Longest output', <Tokens key="output" value={model.max_output_tokens} />],
              [
                'Does not support',
                capabilities.some(([, has]) => !has)
                  ? capabilities
                      .filter(([, has]) => !has)
                      .map(([name]) => name.replaceAll('_', ' '))
                      .join(', ')
                  : undefined,
              ],
              ['Targets', isOfAll ? <TargetHealth key="targets" targets={model.targets} /> : undefined],
              ['Strategy', isOfAll ? model.strategy : undefined],
              ...fallbacks.map(([reason, ids]): [string, string] => [
                reason === 'unavailable' ? 'If unavailable' : 'If too long',
                ids.join(', '),
              ]),
            ]}
          />
        </Card>
        <Card title="Prices">
          {model.prices.length === 0 ? (
            <p className="soft">
              No price is known: calls of this model count tokens and cost nothing in budgets and usage.
            </p>
          ) : (
            <div className="stack">
              {model.prices.map((price) => (
                <Price key={price.from ?? 'first'} price={price} isOnly={model.prices.length === 1} />
              ))}
            </div>
          )}
        </Card>
      </div>
      <ModelLifecycle model={model} />
      <ModelUsage id={model.id} />
    </div>
  )
}

const Tokens = ({ value }: { value: number | null }) =>
  value === null ? (
    <Nothing text="not known" />
  ) : (
    <>
      <Count value={value} /> tokens
    </>
  )

const amount = (value: number | null, unit: string) =>
  value === null ? undefined : (
    <>
      {money(value)} <span className="faint">{unit}</span>
    </>
  )

function Price({ price, isOnly }: { price: ModelPrice; isOnly: boolean }) {
  const million = 'a million tokens'
  return (
    <div>
      {!isOnly && (
        <h3>
          {price.from === null ? (
            'At first'
          ) : (
            <>
              From <Time at={price.from} />
            </>
          )}
        </h3>
      )}
      <Facts
        rows={[
          ['Input', amount(price.input, million)],
          ['Cached input', price.cached_input === price.input ? undefined : amount(price.cached_input, million)],
          ['Output', amount(price.output, million)],
          ['Reasoning', price.reasoning === price.output ? undefined : amount(price.reasoning, million)],
          ['Output of audio', price.output_audio === price.output ? undefined : amount(price.output_audio, million)],
          ...price.tiers.map((tier): [string, ReturnType<typeof amount>] => [
            `Above ${tier.above} tokens`,
            amount(tier.input, `in, ${tier.output === null ? '–' : money(tier.output)} out`),
          ]),
          ['Image', amount(price.image, 'each')],
          ['Video', amount(price.video, 'each')],
          ['Second of video', amount(price.video_second, 'each')],
          ['3D model', amount(price.three_d, 'each')],
          ['Speech', amount(price.speech_characters, 'per million characters')],
          ['Minute of audio', amount(price.audio_minute, 'each')],
          ['Web search', amount(price.search, 'each')],
          ['Request', amount(price.request, 'each')],
        ]}
      />
    </div>
  )
}
