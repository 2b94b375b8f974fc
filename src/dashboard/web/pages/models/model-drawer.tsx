/** One model: its whole entry of the catalogue, and why its id goes where it goes. */
import type { ExplainReply, Model, Price } from '../../../server/schema/schema.js'
import { useResource } from '../../api/resource.js'
import { exactCount, price as dollars } from '../../format/number.js'
import { date } from '../../format/time.js'
import { baseOf, KEY_PLACE } from '../../format/snippets.js'
import { Button } from '../../parts/actions/button.js'
import { CopyButton } from '../../parts/actions/copy.js'
import { Dialog } from '../../parts/dialogs/dialog.js'
import { SnippetTabs } from '../../parts/code/snippet-tabs.js'
import { BlockSkeleton, Failed } from '../../parts/states/states.js'
import { go } from '../../routing/place.js'
import { useSession } from '../../shell/session.js'

interface DrawerProps {
  readonly id: string
  /** Null where the catalogue has no such id; a route may take it all the same. */
  readonly model: Model | null
  readonly onClose: () => void
}

/** The drawer at the side. */
export function ModelDrawer({ id, model, onClose }: DrawerProps) {
  const { session } = useSession()
  const { data, problem, reload } = useResource('/models/explain', { model: id })
  return (
    <Dialog title={id} side onClose={onClose}>
      <div className="drawer-body">
        <p className="drawer-actions">
          <CopyButton text={id} what="model id" label />
          <Button
            icon="playground"
            onClick={() => go(`/playground?model=${encodeURIComponent(id)}`)}
          >
            Try it
          </Button>
        </p>
        {problem !== null ? (
          <Failed what="Its route" problem={problem} retry={() => reload()} />
        ) : data === null ? (
          <BlockSkeleton />
        ) : (
          <RouteFacts explained={data} />
        )}
        {model === null ? null : <ModelFacts model={model} />}
        <SnippetTabs target={{ base: baseOf(session.publicUrl), model: id, key: KEY_PLACE }} />
      </div>
    </Dialog>
  )
}

function RouteFacts({ explained }: { readonly explained: ExplainReply }) {
  const { route, why, dialectWhy, others } = explained
  return (
    <section>
      <h3 className="drawer-heading">Where it goes now</h3>
      <p>{why}</p>
      {route === null ? null : (
        <dl className="facts">
          <dt>Upstream</dt>
          <dd>
            {route.upstream}
            {route.configured ? null : <span className="tag warn">no key: answers 503</span>}
          </dd>
          <dt>Asked for</dt>
          <dd>
            <code>{route.model}</code>
          </dd>
          <dt>Format</dt>
          <dd>
            {route.dialect}
            {route.dialectWithTools === route.dialect
              ? null
              : `, with tools ${route.dialectWithTools}`}
            {dialectWhy === null ? null : <span className="soft"> · {dialectWhy}</span>}
          </dd>
          {others.length === 0 ? null : (
            <>
              <dt>Also fit</dt>
              <dd>{others.join(', ')}</dd>
            </>
          )}
        </dl>
      )}
    </section>
  )
}

function ModelFacts({ model }: { readonly model: Model }) {
  const known = (value: number | null): string =>
    value === null ? 'not known' : `${exactCount(value)} tokens`
  return (
    <section>
      <h3 className="drawer-heading">In the catalogue</h3>
      <dl className="facts">
        <dt>Family</dt>
        <dd>{model.family}</dd>
        <dt>Released</dt>
        <dd>{date(model.releasedAtMs, Date.now())}</dd>
        <dt>Context</dt>
        <dd>{known(model.contextWindow)}</dd>
        <dt>Max. output</dt>
        <dd>{known(model.maxOutputTokens)}</dd>
        <dt>Abilities</dt>
        <dd>
          <Abilities model={model} />
        </dd>
        {model.variants.length === 0 ? null : (
          <>
            <dt>Dated ids</dt>
            <dd>{model.variants.join(', ')}</dd>
          </>
        )}
        <dt>Price</dt>
        <dd>{model.price === null ? 'not known' : <Prices price={model.price} />}</dd>
      </dl>
    </section>
  )
}

function Abilities({ model }: { readonly model: Model }) {
  const named = [
    ['tools', model.tools],
    ['images', model.vision],
    ['audio', model.audioInput],
    ['reasoning', model.reasoning],
    ['structured output', model.structuredOutput],
  ] as const
  return (
    <>
      {named.map(([name, value]) => (
        <span key={name} className={value === true ? 'tag good' : 'tag'}>
          {value === null ? `${name}: not known` : value ? name : `no ${name}`}
        </span>
      ))}
    </>
  )
}

function Prices({ price }: { readonly price: Price }) {
  const named = [
    ['in', price.input],
    ['out', price.output],
    ['cached in', price.cacheRead],
    ['written to cache', price.cacheWrite],
  ] as const
  const { longContext } = price
  return (
    <>
      {named
        .flatMap(([name, value]) => (value === undefined ? [] : [`${dollars(value)} ${name}`]))
        .join(' · ')}
      <span className="soft"> per million tokens</span>
      {longContext === undefined ? null : (
        <p className="soft">
          Prompts longer than {exactCount(longContext.aboveInputTokens)} tokens:{' '}
          {dollars(longContext.input)} in · {dollars(longContext.output)} out
        </p>
      )}
    </>
  )
}
