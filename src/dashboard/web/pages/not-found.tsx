/** The page for an unknown address. */
import { Empty } from '../components/loading-states.js'
import { Link } from '../routing.js'
import { Page } from '../shell/page.js'

/** Links to the overview. */
export function NotFoundPage() {
  return (
    <Page title="Not found" purpose="No page has this address.">
      <Empty title="Page not found">
        <p>
          The address may be mistyped, or the page is for administrators.{' '}
          <Link to="/">Go to the overview</Link>
        </p>
      </Empty>
    </Page>
  )
}
