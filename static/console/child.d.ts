// What an element may hold. In a file of its own, since a comment cannot declare a type that names itself.
import type { ReadonlySignal } from "@preact/signals";
import type { VNode } from "preact";

export type Single = VNode<any> | string | number | bigint | boolean | null | undefined | ReadonlySignal<any>;
export type Child = Single | Child[];
