/** How the gateway is now, and over a range of time. */
import { PageHead } from '../../ui/page-head.tsx'

export function HomePage() {
  return <PageHead title="Home" />
}
