/** A model: its catalogue entry, its current route and the reason for it. */
import type { ExplainReply, Model, Price, RouteTarget } from '../../../server/schema/schema.js'
import { useResource } from '../../api/load-resource.js'
import { exactCount, percent, price as dollars } from '../../format/number.js'
import { date } from '../../format/time.js'
import { baseOf, KEY_PLACEHOLDER } from '../../format/request-formats.js'
import { Button } from '../../components/actions/button.js'
import { CopyButton } from '../../components/actions/copy-button.js'
import { Dialog } from '../../components/dialogs/dialog.js'
import { RequestCode } from '../../components/code/request-code.js'
import { BlockSkeleton, Failed } from '../../components/states/states.js'
import { go } from '../../routing/location.js'
import { useSession } from '../../shell/session.js'

interface DrawerProps {
  readonly id: string
  /** Null if the catalogue does not have the id; it may have a route. */
  readonly model: Model | null
  readonly onClose: () => void
}

/** The drawer of a model. */
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
          <Failed what="The route" problem={problem} retry={() => reload()} />
        ) : data === null ? (
          <BlockSkeleton />
        ) : (
          <RouteFacts explained={data} />
        )}
        {model === null ? null : <ModelFacts model={model} />}
        <RequestCode
          target={{ base: baseOf(session.publicUrl), model: id, key: KEY_PLACEHOLDER }}
        />
      </div>
    </Dialog>
  )
}

function RouteFacts({ explained }: { readonly explained: ExplainReply }) {
  const { route, why, dialectWhy, others } = explained
  return (
    <section>
      <h3 className="drawer-heading">Current route</h3>
      <p>{why}</p>
      {route === null ? null : (
        <dl className="facts">
          <dt>Upstream</dt>
          <dd>
            {route.upstream}
            {route.configured ? null : <span className="tag warn">no API key: replies 503</span>}
          </dd>
          <dt>Model</dt>
          <dd>
            <code>{route.model}</code>
          </dd>
          {route.conditions === '' ? null : (
            <>
              <dt>Conditions</dt>
              <dd>{route.conditions}</dd>
            </>
          )}
          {route.targets.length > 1 ? (
            <>
              <dt>All targets</dt>
              <dd>
                <TargetList targets={route.targets} />
              </dd>
            </>
          ) : null}
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
              <dt>Other routes</dt>
              <dd>{others.join(', ')}</dd>
            </>
          )}
        </dl>
      )}
    </section>
  )
}

function TargetList({ targets }: { readonly targets: readonly RouteTarget[] }) {
  return (
    <ul className="targets">
      {targets.map(({ upstream, model, share, isFallback, price }, at) => (
        <li key={at}>
          {model} <span className="soft">at {upstream}</span>{' '}
          <span className="tag">{isFallback ? 'fallback' : percent(share)}</span>
          {price === null ? null : <Prices price={price} />}
        </li>
      ))}
    </ul>
  )
}

function ModelFacts({ model }: { readonly model: Model }) {
  const known = (value: number | null): string =>
    value === null ? 'Unknown' : `${exactCount(value)} tokens`
  return (
    <section>
      <h3 className="drawer-heading">Catalogue</h3>
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
        <dd>{model.price === null ? 'Unknown' : <Prices price={model.price} />}</dd>
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
          {value === null ? `${name}: unknown` : value ? name : `no ${name}`}
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
