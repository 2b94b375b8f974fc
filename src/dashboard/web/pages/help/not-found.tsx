/** An address that no page has. */
import { Empty } from '../../parts/states/states.js'
import { Link } from '../../routing/link.js'
import { Page } from '../../shell/page.js'

/** Says so, and where to go instead. */
export function NotFoundPage() {
  return (
    <Page title="Not found" purpose="There is no page at this address.">
      <Empty title="Nothing here">
        <p>
          The address may be mistyped, or the page is for administrators.{' '}
          <Link to="/">Go to the overview</Link>
        </p>
      </Empty>
    </Page>
  )
}
