/** Calls models of each kind as the person who is logged in. */
import { useEffect } from 'react'
import { useMe } from '../../api/hooks.ts'
import { text } from '../../lib/search.ts'
import { useAddress } from '../../ui/address.ts'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { Chat } from './chat.tsx'
import { openFor } from './chat-store.ts'
import { ProjectChoice } from './project-choice.tsx'

export function PlaygroundPage() {
  const me = useMe()
  const [{ project }, change] = useAddress({ project: text() })
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
      <Chat project={project} />
    </>
  )
}
