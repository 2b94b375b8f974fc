/** The page for an unknown address, and for a page that is not for the user's role. */
import { Empty } from '../components/loading-states.js'
import { Link } from '../routing.js'
import type { Section } from '../shell/navigation-rail.js'
import { Page } from '../shell/page.js'

/** Who may open what needs a right. */
const FOR: Readonly<Record<NonNullable<Section['needs']>, string>> = {
  readsKeys: 'members and owners of an account, administrators and auditors',
  makesKeys: 'members and owners of an account, and for administrators',
  readsMembers: 'owners of an account, administrators and auditors',
  readsAccounts: 'owners of an account, administrators and auditors',
  readsGateway: 'administrators and auditors',
}

interface NotFoundProps {
  /** The page that the user may not open. */
  readonly section?: Section | undefined
}

/** Links to the overview. */
export function NotFoundPage({ section }: NotFoundProps) {
  const needs = section?.needs ?? null
  if (section === undefined || needs === null) {
    return (
      <Page title="Not found" purpose="No page has this address.">
        <Empty title="Page not found">
          <p>
            The address may be mistyped. <Link to="/">Go to the overview</Link>
          </p>
        </Empty>
      </Page>
    )
  }
  return (
    <Page title={section.name} purpose="This page is not for your role.">
      <Empty title={`${section.name} is for ${FOR[needs]}`}>
        <p>
          Ask an owner of the account or an administrator. <Link to="/">Go to the overview</Link>
        </p>
      </Empty>
    </Page>
  )
}
