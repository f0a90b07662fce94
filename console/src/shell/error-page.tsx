/** The pages shown for a page that failed and for one that does not exist. */
import { ButtonLink } from '../ui/button.tsx'
import { PageHead } from '../ui/page-head.tsx'
import { Empty, Failed } from '../ui/states.tsx'

export function ErrorPage({ error }: { error: Error }) {
  return (
    <>
      <PageHead title="This page failed" />
      <Failed error={error} onRetry={() => location.reload()} />
    </>
  )
}

export function UnknownPage() {
  return (
    <>
      <PageHead title="There is no such page" />
      <Empty title="This address leads nowhere" icon="search" acts={<ButtonLink to="/">Go to Home</ButtonLink>}>
        Press Ctrl K to find pages, models, tokens, requests and tasks.
      </Empty>
    </>
  )
}

/** `title`: of the page that is not for the role of the person. */
export function ForbiddenPage({ title }: { title: string }) {
  return (
    <>
      <PageHead title={title} />
      <Empty title="You may not see this" icon="key" acts={<ButtonLink to="/">Go to Home</ButtonLink>}>
        Your role does not include this page. An owner of the gateway can give you another one.
      </Empty>
    </>
  )
}
