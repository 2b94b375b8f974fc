/** What stands where there is no traffic yet: the one line that makes some. */
import { useExampleModel } from '../../api/served-model.js'
import { baseOf, curl, KEY_PLACE } from '../../format/snippets.js'
import { Link } from '../../routing/link.js'
import { useSession } from '../../shell/session.js'
import { CodeBlock } from '../actions/copy.js'
import { Empty } from './states.js'

/** An empty view of traffic; `what` says what will be here. */
export function FirstCall({ what }: { readonly what: string }) {
  const { session } = useSession()
  const model = useExampleModel()
  const hasKeys = (session.account?.liveKeys ?? 0) > 0
  const target = { base: baseOf(session.publicUrl), model, key: KEY_PLACE }
  return (
    <Empty title="No requests in this time">
      <p>
        {what} They appear here within a second of the first call.{' '}
        {hasKeys ? (
          <>
            Put one of <Link to="/keys">your keys</Link> in the place of <code>{KEY_PLACE}</code>:
          </>
        ) : (
          <>
            <Link to="/keys?create=1">Create a key</Link>, then:
          </>
        )}
      </p>
      <CodeBlock what="curl" code={curl(target)} />
    </Empty>
  )
}
