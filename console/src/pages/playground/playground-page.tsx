/** Calls models of each kind as the person who is logged in. */
import { type ComponentType, useEffect } from 'react'
import { useApi, useMe } from '../../api/hooks.ts'
import { choice, several, text } from '../../lib/search.ts'
import { useAddress } from '../../ui/address.ts'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty, Failed, Loading } from '../../ui/states.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { Chat } from './chat.tsx'
import { openFor } from './chat-store.ts'
import { Embeddings } from './embeddings.tsx'
import { type FamilyProps, useFirstModels } from './family-parts.tsx'
import { Images } from './images.tsx'
import { Moderation } from './moderation.tsx'
import { ProjectChoice } from './project-choice.tsx'
import { Rerank } from './rerank.tsx'
import { Speech } from './speech.tsx'
import { storedTexts, useStoredContents } from './stored-request.ts'
import { Models3d, Videos } from './tasks.tsx'
import { Transcription } from './transcription.tsx'

type Kind = { value: string; label: string; family: string; View: ComponentType<FamilyProps> }

const KINDS: Kind[] = [
  { value: 'images', label: 'Images', family: 'image-generation', View: Images },
  { value: 'video', label: 'Video', family: 'video-generation', View: Videos },
  { value: '3d', label: '3D', family: '3d-generation', View: Models3d },
  { value: 'speech', label: 'Speech', family: 'audio-speech', View: Speech },
  { value: 'transcription', label: 'Transcription', family: 'audio-transcription', View: Transcription },
  { value: 'embeddings', label: 'Embeddings', family: 'embeddings', View: Embeddings },
  { value: 'rerank', label: 'Rerank', family: 'rerank', View: Rerank },
  { value: 'moderation', label: 'Moderation', family: 'moderations', View: Moderation },
]
const READERS = {
  project: text(),
  kind: choice(['', 'chat', ...KINDS.map(({ value }) => value)], ''),
  model: several(),
  task: text(),
  request: text(),
}

export function PlaygroundPage() {
  const me = useMe()
  const [{ project }, change] = useAddress(READERS)
  useEffect(() => {
    if (me) openFor(me.actor)
  }, [me])
  if (me && !me.rights.includes('call'))
    return (
      <>
        <PageHead title="Playground" />
        <Empty title="You may not call models" icon="key">
          Your role has no right to call models. Ask an owner for another role.
        </Empty>
      </>
    )
  return (
    <>
      <PageHead
        title="Playground"
        note="Try models and compare them. Calls count like those of any client."
        acts={<ProjectChoice value={project} onChange={(value) => change({ project: value })} />}
      />
      <Kinds project={project} />
    </>
  )
}

/** An address that names a model and no kind, such as one from the request log, opens the kind of the model. */
function Kinds({ project }: { project: string }) {
  const [{ kind, model }, change] = useAddress(READERS)
  const [id = ''] = model
  const first = useApi('GET /admin/v1/models/{model}', { params: { model: id } }, { enabled: id !== '' && kind === '' })
  if (first.isLoading) return <Loading />
  const families = first.data?.families ?? []
  const ofModel = families.includes('chatcompat') ? undefined : KINDS.find(({ family }) => families.includes(family))
  const shown = kind || (ofModel?.value ?? 'chat')
  return (
    <Tabs
      value={shown}
      tabs={[
        { value: 'chat', label: 'Chat', content: <Chat project={project} /> },
        ...KINDS.map(({ value, label, family, View }) => ({
          value,
          label,
          content: <Family family={family} View={View} project={project} />,
        })),
      ]}
      onChange={(value) => change({ kind: value, model: [], task: '', request: '' }, { push: true })}
    />
  )
}

function Family({ family, View, project }: Pick<Kind, 'family' | 'View'> & { project: string }) {
  const [{ model, request }, change] = useAddress(READERS)
  const { contents, isLoading, notice } = useStoredContents(request)
  const { rows, isLoading: isFinding, error, reload } = useFirstModels(family)
  const chosen = model[0] ?? rows[0]?.id
  if (isFinding) return <Loading />
  if (error) return <Failed error={error} onRetry={reload} />
  if (chosen === undefined)
    return <Empty title="There is no model of this kind">Add a provider that has one, or switch the sandbox on.</Empty>
  const onModel = (id: string) => change({ model: id === '' ? [] : [id] })
  if (isLoading) return <Loading />
  const stored = storedTexts(contents)
  return (
    <div className="stack">
      {notice && <p className="play-notice">{notice}</p>}
      <View key={contents?.id} model={chosen} family={family} project={project} stored={stored} onModel={onModel} />
    </div>
  )
}
