/** Parts of the page whose script is loaded with their first use. */
import {
  createElement,
  lazy,
  Suspense,
  type ComponentType,
  type FunctionComponent,
  type ReactNode,
} from 'react'

/** The component that `load` brings; until then `fallback`, by default nothing. */
export function later<Props extends object>(
  load: () => Promise<FunctionComponent<Props>>,
  fallback: (props: Props) => ReactNode = () => null,
): ComponentType<Props> {
  const Loaded = lazy(async () => {
    const part = await load()
    return { default: ({ props }: { readonly props: Props }) => createElement(part, props) }
  })
  return function Later(props: Props) {
    return (
      <Suspense fallback={fallback(props)}>
        <Loaded props={props} />
      </Suspense>
    )
  }
}
