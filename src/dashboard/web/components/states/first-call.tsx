/** The empty state of views of traffic, with a command that sends a first request. */
import { useExampleModel } from '../../api/example-model.js'
import { baseOf, HELLO, inFormat, KEY_PLACEHOLDER } from '../../format/request-formats.js'
import { snippet } from '../../format/snippets.js'
import { Link } from '../../routing/link.js'
import { useSession } from '../../shell/session.js'
import { CodeBlock } from '../actions/copy-button.js'
import { Empty } from './states.js'

/** The empty state; `what` describes the future content. */
export function FirstCall({ what }: { readonly what: string }) {
  const { session } = useSession()
  const model = useExampleModel()
  const hasKeys = (session.account?.liveKeys ?? 0) > 0
  const target = { base: baseOf(session.publicUrl), model, key: KEY_PLACEHOLDER }
  return (
    <Empty title="No requests yet">
      <p>
        {what} A request appears here within a second.{' '}
        {hasKeys ? (
          <>
            Send one, with one of <Link to="/keys">your keys</Link> in the variable{' '}
            <code>{KEY_PLACEHOLDER.slice(1)}</code>:
          </>
        ) : (
          <>
            <Link to="/keys?create=1">Create a key</Link>, then:
          </>
        )}
      </p>
      <CodeBlock what="curl" code={snippet('curl', inFormat('chat', target, HELLO))} />
    </Empty>
  )
}
