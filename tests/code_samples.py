"""Small sources in every language whose syntax is read, for the tests of cutting and of symbols."""

PYTHON = '''\
from __future__ import annotations

import os, sys as system
import a.b
from ..pkg import one, two as three
from .star import *

LIMIT = 10
table: dict[str, int] = {
    "a": 1,
}


@decorated
class Shop(Base):
    """Sells."""

    attribute = 1

    @property
    def total(self) -> int:
        def inner():
            return 1

        return inner()

    async def buy(self): ...


if system:
    def conditional():
        import late
        return late


type Pair = tuple[int, int]
'''

TYPESCRIPT = """\
import React, { useState as state, type Ref } from "react";
import * as path from 'node:path';
import "./side-effect";
import fs = require("fs");
export { helper } from "./helper";
export * from "./all";
const { a, b: c } = require("legacy");
const lazy = await import("./lazy");

/** Sells. */
@Injectable()
export class Shop<T> extends Base {
  handler = (e: Event) => {
    return 1;
  };

  get total(): number { return 1; }
  static async buy() {}
}

export abstract class Shape {
  abstract area(): number;
}
export interface Item { price(): number }
export type Id = string;
export enum Color { Red }
namespace Outer { export function inside() {} }
declare function ambient(): void;
export const arrow = async () => 1, other = function () {};
export const LIMIT = 10;
const api = { get() {}, post: () => {}, "odd-key": function () {}, plain: 1 };
export default function () {
  const local = () => {
    return 2;
  };
}
"""

JAVASCRIPT = """\
'use strict';
const express = require('express'), { join } = require('path');
require('./setup');
exports.start = function () {};
module.exports.stop = () => {};
Shop.prototype.open = function () {};
module.exports = { close() {}, name: 'x' };
function* each() {}
class Store { #secret() {} }
export default class extends Base { run() {} }
"""

GO = """\
package shop

import (
	"fmt"
	log "example.org/log"
	. "math"
)

const Limit = 10

var (
	first = 1
)

// Shop sells.
type Shop[T any] struct {
	items []T
}

type Seller interface{ Sell() error }

type (
	Id   = string
	Kind int
)

// Sell sells.
func (s *Shop[T]) Sell(n int) error {
	return nil
}

func New() *Shop[int] { return nil }
"""

RUST = """\
use std::collections::{self, HashMap, hash_map::{Entry as E, *}};
use crate::shop;
use super::*;
use serde as s;
extern crate rand;
mod cart;

/// Sells.
#[derive(Debug)]
pub struct Shop<T> {
    items: Vec<T>,
}

impl<T: Clone> std::fmt::Display for Shop<T> {
    fn fmt(&self) {}
}

impl Shop<u8> {
    pub const fn new() -> Self { Shop { items: vec![] } }
}

pub trait Sell { fn sell(&self); fn twice(&self) {} }
pub enum Color { Red }
macro_rules! shout { () => {} }
const LIMIT: u8 = 10;
static mut COUNT: u8 = 0;
type Id = String;

#[cfg(test)]
mod tests {
    #[test]
    fn works() {}
}
"""

JAVA = """\
package org.example.shop;

import java.util.List;
import java.util.concurrent.*;
import static java.lang.Math.max;

/** Sells. */
@Service
public class Shop<T> extends Base {
    private static final int LIMIT = 10;

    public Shop() {}

    @Override
    public <U> int total(int a) { return 1; }

    enum Color { RED; void paint() {} }
    record Pair(int a) { Pair {} }
}

interface Seller { void sell(); }
@interface Service {}
"""

C = """\
#include <stdio.h>
#include "shop/item.h"
#define LIMIT 10
#define SQUARE(x) ((x) * (x))

typedef struct item { int price; } item_t;
enum color { RED };
struct node { struct node *next; };
static int total(const struct node *head);

#ifdef DEBUG
static void trace(void) {}
#endif

char **names(struct node *head)
{
    return 0;
}
"""

CPP = """\
#include <vector>

namespace shop {

/// Sells.
template <typename T>
class Shop : public Base {
 public:
  Shop();
  ~Shop() {}
  int total() const { return 1; }
  bool operator==(const Shop& other) const;
  struct Item { int price; };

 private:
  int count_;
};

template <typename T>
int Shop<T>::count(const std::vector<T>& all) { return 0; }

using Id = int;
enum class Color { Red };
int& reference(int a) { return a; }

}  // namespace shop
"""

CSHARP = """\
using System.Text;
using static System.Math;
using Json = System.Text.Json;

namespace Example.Shop
{
    [Serializable]
    public class Shop : Base
    {
        public int Total { get; set; }
        public Shop() {}
        public void Sell<T>(T item) { void Local() {} }
    }

    public record Pair(int A);
    interface ISeller { void Sell(); }
    enum Color { Red }
    delegate void Sold(int n);
}
"""

RUBY = """\
require 'json'
require_relative 'lib/cart'
require "#{dir}/dynamic"

module Shop
  LIMIT = 10

  # Sells.
  class Store < Base
    attr_reader :items

    def initialize(items)
      @items = items
    end

    def self.open; end

    class << self
      def close; end
    end

    private def secret = 1
  end

  def helper; end
end

def top; end
"""

PHP = """\
<?php
namespace Example\\Shop;

use Vendor\\Package\\Item;
use Vendor\\Other\\{First, Second as Two};
use function Vendor\\helper;
require_once 'legacy.php';

const LIMIT = 10;

/** Sells. */
final class Shop extends Base implements Seller
{
    const INNER = 1;

    public function total(int $a): int
    {
        return 1;
    }
}

interface Seller {}
trait Sells {}
enum Color: string { case Red = 'r'; }
function top() {}
"""

BASH = """\
#!/usr/bin/env bash
source ./lib.sh
. "$HOME/.profile"
source "$(dirname "$0")/dynamic.sh"

# Sells.
sell() {
  echo sold
}

function total { echo 1; }
"""

LUA = """\
local json = require("json")
require "shop.cart"

local M = {}

function M.open(a) end
function M:close() end
local function helper() end
M.total = function() return 1 end
local count = function() end

return M
"""
