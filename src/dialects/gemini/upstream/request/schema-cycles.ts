/**
 * The cycles of a directed graph, by Tarjan's algorithm for strongly connected components.
 * Linear in nodes and edges, and without recursion: a chain of thousands of nodes does not overflow the stack.
 */

/** A node on the way from the start, and which of its edges have been followed. */
interface Step {
  readonly node: string
  readonly next: Iterator<string, undefined>
}

/** Numbers the nodes so that two have the same number exactly where each leads to the other. */
export function cyclesOf(edges: ReadonlyMap<string, ReadonlySet<string>>): Map<string, number> {
  const search = new Search(edges)
  for (const node of edges.keys()) search.from(node)
  return search.cycles
}

class Search {
  readonly cycles = new Map<string, number>()
  private readonly edges: ReadonlyMap<string, ReadonlySet<string>>
  /** When each node was met, and the earliest node that is known to be reachable from it. */
  private readonly met = new Map<string, number>()
  private readonly earliest = new Map<string, number>()
  /** Nodes that have no number yet, in the order in which they were met. */
  private readonly open: string[] = []

  constructor(edges: ReadonlyMap<string, ReadonlySet<string>>) {
    this.edges = edges
  }

  from(start: string): void {
    if (this.met.has(start)) return
    const way: Step[] = [this.enter(start)]
    for (let step = way.at(-1); step !== undefined; step = way.at(-1)) {
      const next: IteratorResult<string, undefined> = step.next.next()
      const to = next.value
      if (to === undefined) {
        way.pop()
        this.leave(step.node, way.at(-1)?.node)
      } else if (!this.met.has(to)) way.push(this.enter(to))
      else if (!this.cycles.has(to)) this.lower(step.node, this.met.get(to) ?? 0)
    }
  }

  private enter(node: string): Step {
    const at = this.met.size
    this.met.set(node, at)
    this.earliest.set(node, at)
    this.open.push(node)
    return { node, next: (this.edges.get(node) ?? new Set<string>()).values() }
  }

  private leave(node: string, before: string | undefined): void {
    const earliest = this.earliest.get(node) ?? 0
    if (before !== undefined) this.lower(before, earliest)
    const at = this.met.get(node)
    if (at === undefined || earliest !== at) return
    for (let each = this.open.pop(); each !== undefined; each = this.open.pop()) {
      this.cycles.set(each, at)
      if (each === node) return
    }
  }

  private lower(node: string, to: number): void {
    if (to < (this.earliest.get(node) ?? 0)) this.earliest.set(node, to)
  }
}
